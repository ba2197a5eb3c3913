"""ACLs that change while requests come: an answered change is in force at once, and no other request slips through."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from brokers.gateways.kraft.metadata import acl_numbers as numbers
from brokers.wire.errors import ErrorCode
from tests.brokers.gateways.kraft.apis.test_acls import (
    ADMIN,
    ALICE,
    ANY,
    BOB,
    MALLORY,
    STANDARD,
    TOPIC_ERROR,
    create_topics,
    creation,
    forwarded,
    grant,
)
from tests.brokers.gateways.kraft.apis.topic_requests import new_topic, topics
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import TIMEOUT_S, wait_until

ROUNDS = 25
CAROL = "User:carol"
MAY_CREATE = creation(ALICE, "CREATE", name="mine", pattern="PREFIXED")
OF_ALICE = ANY | {"PrincipalFilter": ALICE}


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(tmp_path, super_users=ADMIN, authorizer_class_name=STANDARD)
    client = quorum.client()
    quorum.join(client, 1, 2, 3)
    client.close()
    yield quorum
    # If a gateway ended by itself, this raises its error.
    quorum.stop()


class Span(NamedTuple):
    """A time in which Alice was allowed something, or asked for it, in seconds of the monotonic clock."""

    begin_s: float
    end_s: float
    allowed: bool

    def holds(self, other: "Span") -> bool:
        return self.begin_s <= other.begin_s and other.end_s <= self.end_s


class Beside(threading.Thread):
    """A thread that repeats ``work`` on its own connection until ``stop``, and counts the errors of the answers."""

    def __init__(self, quorum: InProcessQuorum, work: Callable[[ControllerClient, int], list[int]]) -> None:
        super().__init__(daemon=True)
        self.errors: Counter[int] = Counter()
        self.failure: Exception | None = None
        self._client = quorum.client()
        self._work = work
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        number = 0
        try:
            while not self._stopping.is_set():
                self.errors.update(self._work(self._client, number))
                number += 1
        except Exception as error:
            self.failure = error

    def stop(self) -> None:
        self._stopping.set()
        self.join(TIMEOUT_S)
        self._client.close()
        assert self.failure is None
        assert not self.is_alive()


def intrude(client: ControllerClient, number: int) -> list[int]:
    return list(create_topics(client, MALLORY, f"mine-of-mallory-{number}").values())


def grant_others(client: ControllerClient, number: int) -> list[int]:
    """Give another user ACLs, and take them away."""
    granted = grant(client, *(creation(BOB, name, name=f"other-{number}") for name in ("CREATE", "READ", "ALTER")))
    filters = [ANY | {"PrincipalFilter": BOB}]
    removed = forwarded(client, "DeleteAcls", ADMIN, Filters=filters)["FilterResults"]
    return [*granted, *(one["ErrorCode"] for one in removed)]


def grant_oneself(client: ControllerClient, number: int) -> list[int]:
    return grant(client, creation(MALLORY, "ALL", name="*"), by=MALLORY)


def validate(client: ControllerClient, principal: str) -> list[int]:
    """Ask for a topic without creating it."""
    values = {"Topics": [new_topic("mine", 1, 1)], "timeoutMs": 10_000, "validateOnly": True}
    return [one["ErrorCode"] for one in client.forward("CreateTopics", principal=principal, **values)["Topics"]]


def change_often(client: ControllerClient, asked: list[Span]) -> list[Span]:
    """Let Alice create topics, and forbid it again, many times. Return the spans in which no change was under way.

    Each is long enough for her to ask in it: ``asked`` grows meanwhile.
    """
    spans = []
    for number in range(2 * ROUNDS):
        allowed = number % 2 == 0
        if allowed:
            assert grant(client, MAY_CREATE) == [ErrorCode.NONE]
        else:
            [result] = forwarded(client, "DeleteAcls", ADMIN, Filters=[OF_ALICE])["FilterResults"]
            assert len(result["MatchingAcls"]) == 1
        begin_s = time.monotonic()
        wait_until(lambda begin_s=begin_s: asked and asked[-1].begin_s >= begin_s, "a request of Alice")
        spans.append(Span(begin_s, time.monotonic(), allowed))
    return spans


def test_an_answered_change_is_in_force_for_the_next_request_on_any_connection(quorum: InProcessQuorum) -> None:
    admin, alice = quorum.client(), quorum.client()
    intruder, others = Beside(quorum, intrude), Beside(quorum, grant_others)
    try:
        for number in range(ROUNDS):
            assert grant(admin, MAY_CREATE) == [ErrorCode.NONE]
            assert create_topics(alice, ALICE, f"mine-{number}") == {f"mine-{number}": ErrorCode.NONE}
            forwarded(admin, "DeleteAcls", ADMIN, Filters=[OF_ALICE])
            refused = f"mine-refused-{number}"
            assert create_topics(alice, ALICE, refused) == {refused: TOPIC_ERROR}
    finally:
        intruder.stop()
        others.stop()
        admin.close()
        alice.close()
    assert set(intruder.errors) == {TOPIC_ERROR}
    assert set(others.errors) == {ErrorCode.NONE}
    assert set(topics(quorum)) == {f"mine-{number}" for number in range(ROUNDS)}
    assert "acls" not in quorum.view()


def test_a_denial_that_is_answered_stops_what_was_allowed(quorum: InProcessQuorum) -> None:
    admin, alice = quorum.client(), quorum.client()
    others = Beside(quorum, grant_others)
    denial = creation("User:*", "CREATE", name="*", permission="DENY")
    denials = ANY | {"PermissionType": numbers.PERMISSION_TYPES["DENY"]}
    try:
        assert grant(admin, MAY_CREATE) == [ErrorCode.NONE]
        for number in range(ROUNDS):
            assert grant(admin, denial) == [ErrorCode.NONE]
            assert set(create_topics(alice, ALICE, "mine-never").values()) == {TOPIC_ERROR}
            forwarded(admin, "DeleteAcls", ADMIN, Filters=[denials])
            assert set(create_topics(alice, ALICE, f"mine-{number}").values()) == {ErrorCode.NONE}
    finally:
        others.stop()
        admin.close()
        alice.close()
    assert "mine-never" not in topics(quorum)


def test_requests_that_race_with_changes_get_no_more_than_the_acls_allow(quorum: InProcessQuorum) -> None:
    admin = quorum.client()
    both = [creation(CAROL, "CREATE", name="*", permission=permission) for permission in ("ALLOW", "DENY")]
    assert grant(admin, *both) == [ErrorCode.NONE] * 2
    descriptors = len(os.listdir("/proc/self/fd"))
    asked: list[Span] = []

    def ask(client: ControllerClient, number: int) -> list[int]:
        begin_s = time.monotonic()
        errors = validate(client, ALICE)
        asked.append(Span(begin_s, time.monotonic(), errors == [ErrorCode.NONE]))
        return errors

    alice = [Beside(quorum, ask) for _ in range(2)]
    denied = Beside(quorum, lambda client, _: validate(client, CAROL))
    intruder, climber, others = (Beside(quorum, work) for work in (intrude, grant_oneself, grant_others))
    try:
        settled = change_often(admin, asked)
    finally:
        for one in (*alice, denied, intruder, climber, others):
            one.stop()
    assert set(alice[0].errors) | set(alice[1].errors) == {ErrorCode.NONE, TOPIC_ERROR}
    assert set(denied.errors) == set(intruder.errors) == {TOPIC_ERROR}
    assert set(climber.errors) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert set(others.errors) == {ErrorCode.NONE}
    compared = [(span.allowed, one.allowed) for one in asked for span in settled if span.holds(one)]
    assert {allowed for allowed, _ in compared} == {True, False}
    assert [one for one in compared if one[0] != one[1]] == []
    [left] = forwarded(admin, "DeleteAcls", ADMIN, Filters=[ANY])["FilterResults"]
    assert {acl["Principal"] for acl in left["MatchingAcls"]} == {CAROL}
    admin.close()
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors, "the connections to be gone")
