"""ACLs change while requests arrive: each request is answered by ACLs that were in force while it was under way."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from brokers.wire.errors import ErrorCode
from tests.brokers.kraft.apis.test_acls import ADMIN, ALICE, ANY, BOB, MALLORY, STANDARD, TOPIC_ERROR, creation, grant
from tests.brokers.kraft.apis.topic_requests import new_topic
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until

CHANGES = 40
OTHER_ACLS = 50
MINE = creation(ALICE, "CREATE", name="race-", pattern="PREFIXED")
OF_ALICE = ANY | {"PrincipalFilter": ALICE}


class Span(NamedTuple):
    """From when until when Alice was allowed, or asked and was allowed, in seconds of the monotonic clock."""

    begin_s: float
    end_s: float
    allowed: bool

    def holds(self, other: "Span") -> bool:
        return self.begin_s <= other.begin_s and other.end_s <= self.end_s


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(tmp_path, super_users=ADMIN, authorizer_class_name=STANDARD)
    client = quorum.client()
    quorum.join(client, 1, 2, 3)
    client.close()
    yield quorum
    # If a gateway ended by itself, this raises its error.
    quorum.stop()


def asked_to_create(client: ControllerClient, principal: str) -> bool:
    """Ask for a topic that is only validated, and say whether the principal may create it."""
    values = {"Topics": [new_topic("race-t", 1, 1)], "timeoutMs": 10_000, "validateOnly": True}
    [answer] = client.forward("CreateTopics", principal=principal, **values)["Topics"]
    assert answer["ErrorCode"] in (ErrorCode.NONE, TOPIC_ERROR), answer
    return bool(answer["ErrorCode"] == ErrorCode.NONE)


def change_often(client: ControllerClient, asked: list[Span]) -> list[Span]:
    """Let Alice create topics, and forbid it again, many times. Return the spans in which no change was under way.

    Each is long enough for her to ask in it: ``asked`` grows meanwhile.
    """
    spans = []
    for number in range(CHANGES):
        allowed = number % 2 == 0
        if allowed:
            assert grant(client, MINE) == [ErrorCode.NONE]
        else:
            [result] = client.forward("DeleteAcls", principal=ADMIN, Filters=[OF_ALICE])["FilterResults"]
            assert len(result["MatchingAcls"]) == 1
        begin_s = time.monotonic()
        wait_until(lambda begin_s=begin_s: asked and asked[-1].begin_s >= begin_s, "a request of Alice")
        spans.append(Span(begin_s, time.monotonic(), allowed))
    return spans


def change_others(client: ControllerClient) -> None:
    """Write and delete ACLs that have nothing to do with Alice, all in one request."""
    others = [creation(f"User:{number}", "READ", name=f"race-{number}") for number in range(OTHER_ACLS)]
    of_them = [ANY | {"PrincipalFilter": f"User:{number}"} for number in range(OTHER_ACLS)]
    assert set(grant(client, *others)) == {ErrorCode.NONE}
    client.forward("DeleteAcls", principal=ADMIN, Filters=of_them)


def grants_herself(client: ControllerClient) -> None:
    assert grant(client, creation(MALLORY, "ALL", name="*"), by=MALLORY) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert not asked_to_create(client, MALLORY)


def test_requests_that_race_with_acl_changes_get_no_more_than_the_acls_allow(quorum: InProcessQuorum) -> None:
    admin = quorum.client()
    both = [creation(BOB, "CREATE", name="*", permission=permission) for permission in ("ALLOW", "DENY")]
    assert grant(admin, *both) == [ErrorCode.NONE] * 2
    descriptors = len(os.listdir("/proc/self/fd"))
    over = threading.Event()

    def until_over(ask: Callable[[ControllerClient], None]) -> int:
        """Ask again and again by a client of its own; return how often."""
        client, count = quorum.client(), 0
        while not over.is_set():
            ask(client)
            count += 1
        client.close()
        return count

    asked: list[Span] = []

    def alice(client: ControllerClient) -> None:
        begin_s = time.monotonic()
        allowed = asked_to_create(client, ALICE)
        asked.append(Span(begin_s, time.monotonic(), allowed))

    def bob(client: ControllerClient) -> None:
        assert not asked_to_create(client, BOB), "a denial comes before what allows him"

    with ThreadPoolExecutor() as threads:
        racing = [threads.submit(until_over, ask) for ask in (alice, alice, bob, grants_herself, change_others)]
        try:
            settled = change_often(admin, asked)
        finally:
            over.set()
        counts = [one.result() for one in racing]
    assert min(counts) > 0
    compared = [(span.allowed, one.allowed) for one in asked for span in settled if span.holds(one)]
    assert {True, False} == {allowed for allowed, _ in compared}
    assert [one for one in compared if one[0] != one[1]] == []
    [left] = admin.forward("DeleteAcls", principal=ADMIN, Filters=[ANY])["FilterResults"]
    assert {acl["Principal"] for acl in left["MatchingAcls"]} == {BOB}
    admin.close()
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors, "the connections to be gone")
