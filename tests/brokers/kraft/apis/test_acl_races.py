"""ACLs that change while requests come: an answered change is in force at once, and no other request slips through."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brokers.gateways.kraft.metadata import acl_numbers as numbers
from brokers.wire.errors import ErrorCode
from tests.brokers.kraft.apis.test_acls import (
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
from tests.brokers.kraft.apis.topic_requests import topics
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import TIMEOUT_S

ROUNDS = 25


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(tmp_path, super_users=ADMIN, authorizer_class_name=STANDARD)
    client = quorum.client()
    quorum.join(client, 1, 2, 3)
    client.close()
    yield quorum
    quorum.stop()


class Beside(threading.Thread):
    """Repeat ``work`` on a connection of its own until ``stop``, and count the errors of its answers."""

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


def test_an_answered_change_is_in_force_for_the_next_request_on_any_connection(quorum: InProcessQuorum) -> None:
    admin, alice = quorum.client(), quorum.client()
    intruder, others = Beside(quorum, intrude), Beside(quorum, grant_others)
    may_create = creation(ALICE, "CREATE", name="mine", pattern="PREFIXED")
    of_alice = ANY | {"PrincipalFilter": ALICE}
    try:
        for number in range(ROUNDS):
            assert grant(admin, may_create) == [ErrorCode.NONE]
            assert create_topics(alice, ALICE, f"mine-{number}") == {f"mine-{number}": ErrorCode.NONE}
            forwarded(admin, "DeleteAcls", ADMIN, Filters=[of_alice])
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
    may_create = creation(ALICE, "CREATE", name="mine", pattern="PREFIXED")
    denial = creation("User:*", "CREATE", name="*", permission="DENY")
    denials = ANY | {"PermissionType": numbers.PERMISSION_TYPES["DENY"]}
    try:
        assert grant(admin, may_create) == [ErrorCode.NONE]
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
