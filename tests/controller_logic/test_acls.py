"""ACLs in the state: created, deleted, bounded, and only where they can become records."""

from typing import Any

import pytest
from msgspec import UNSET

from controller_logic import acls as rules
from controller_logic.replay import decide
from controller_logic.resharding import resharded
from state.acl import Acl, AclFilter, acl_id_of
from state.decisions import AclsDecision, Answer, Rejected
from state.policy import Policy
from state.reason import Reason
from state.stored.codec import decode_cluster, encode_cluster
from tests.support.world import World

ALICE = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission_type": "ALLOW",
}
BOB = ALICE | {"principal": "User:bob", "permission_type": "DENY"}
PREFIX = ALICE | {"pattern_type": "PREFIXED", "resource_name": "ord"}
ANY_TOPIC = ALICE | {"resource_name": "*", "operation": "DESCRIBE"}
GROUP = ALICE | {"resource_type": "GROUP", "host": "10.0.0.1"}
ALL = (ALICE, BOB, PREFIX, ANY_TOPIC, GROUP)


def acl(fields: dict[str, str]) -> Acl:
    return Acl(**fields)  # type: ignore[arg-type]


def world(*, is_kraft: bool = True) -> World:
    started = World()
    started.publish("controller_started", controller_id="c", controller_epoch=1)
    started.tick()
    started.publish("gateway_started", gateway=100, incarnation="g", voters=[100], is_kraft=is_kraft, request_id="g")
    return started


def create(started: World, *acls: dict[str, str], **fields: Any) -> str:
    started.publish("create_acls", acls=acls, request_id="q", **fields)
    return str(started.error)


def delete(started: World, *filters: dict[str, str], **fields: Any) -> list[Acl]:
    started.publish("delete_acls", filters=filters, request_id="q", **fields)
    found = started.one(Answer).acls
    assert found is not UNSET
    return list(found)


def held(started: World) -> set[Acl]:
    return set(started.state.cluster.acls.values())


def test_acls_are_created_once() -> None:
    started = world()
    assert create(started, ALICE, BOB, ALICE) == "NONE"
    decision = started.one(AclsDecision)
    assert (decision.reason, decision.deleted) == (Reason.ACLS_CHANGED, ())
    assert {one.acl_id for one in decision.created} == {acl_id_of(acl(ALICE)), acl_id_of(acl(BOB))}
    assert held(started) == {acl(ALICE), acl(BOB)}
    assert create(started, BOB) == "NONE"
    assert started.all(AclsDecision) == []
    assert create(started, BOB, GROUP, principal="User:admin") == "NONE"
    decision = started.one(AclsDecision)
    assert ([one.principal for one in decision.created], decision.principal) == (["User:alice"], "User:admin")


def test_acls_have_the_same_id_after_they_are_stored_again() -> None:
    started = world()
    create(started, *ALL)
    cluster = started.state.cluster
    assert list(cluster.acls) == sorted(cluster.acls)
    assert decode_cluster(encode_cluster(cluster)) == cluster
    assert {acl_id: acl_id_of(one) for acl_id, one in cluster.acls.items()} == {one: one for one in cluster.acls}
    assert acl_id_of(acl(ALICE)) == "3kBHkWHPcuOpoSEEptdWcQ"


SELECTIONS: list[tuple[dict[str, str], list[dict[str, str]]]] = [
    ({}, [*ALL]),
    ({"resource_type": "TOPIC"}, [ALICE, BOB, PREFIX, ANY_TOPIC]),
    ({"resource_name": "orders"}, [ALICE, BOB, GROUP]),
    ({"resource_name": "ord"}, [PREFIX]),
    ({"resource_name": "*"}, [ANY_TOPIC]),
    ({"pattern_type": "PREFIXED"}, [PREFIX]),
    ({"pattern_type": "PREFIXED", "resource_name": "orders"}, []),
    ({"pattern_type": "LITERAL", "resource_name": "orders"}, [ALICE, BOB, GROUP]),
    ({"pattern_type": "MATCH"}, [*ALL]),
    ({"pattern_type": "MATCH", "resource_name": "orders"}, [*ALL]),
    ({"pattern_type": "MATCH", "resource_name": "ordinary"}, [PREFIX, ANY_TOPIC]),
    ({"pattern_type": "MATCH", "resource_name": "ord"}, [PREFIX, ANY_TOPIC]),
    ({"pattern_type": "MATCH", "resource_name": "or"}, [ANY_TOPIC]),
    ({"principal": "User:bob"}, [BOB]),
    ({"principal": "User:*"}, []),
    ({"host": "10.0.0.1"}, [GROUP]),
    ({"host": "*"}, [ALICE, BOB, PREFIX, ANY_TOPIC]),
    ({"operation": "DESCRIBE"}, [ANY_TOPIC]),
    ({"operation": "ALL"}, []),
    ({"permission_type": "DENY"}, [BOB]),
    (ALICE, [ALICE]),
    (ALICE | {"host": "h"}, []),
]


@pytest.mark.parametrize(("wanted", "expected"), SELECTIONS, ids=lambda one: str(one)[:60])
def test_a_filter_selects_what_kafkas_would(wanted: dict[str, str], expected: list[dict[str, str]]) -> None:
    started = world()
    create(started, *ALL)
    found = delete(started, wanted)
    assert set(found) == set(map(acl, expected))
    assert held(started) == set(map(acl, ALL)) - set(found)
    decisions = started.all(AclsDecision)
    assert {acl_id_of(one) for one in found} == {one.acl_id for told in decisions for one in told.deleted}
    assert len(decisions) == bool(found)


def test_an_exact_filter_selects_as_an_open_one_does() -> None:
    for fields in ALL:
        exact = AclFilter(**fields)  # type: ignore[arg-type]
        assert exact.is_exact
        assert [one for one in map(acl, ALL) if exact.selects(one)] == [acl(fields)]


def test_overlapping_filters_delete_once() -> None:
    started = world()
    create(started, *ALL)
    assert len(delete(started, {"resource_type": "TOPIC"}, ALICE, {"principal": "User:alice"})) == len(ALL)
    assert (held(started), delete(started, {})) == (set(), [])


def test_the_only_cluster_has_its_name() -> None:
    started = world()
    cluster = ALICE | {"resource_type": "CLUSTER"}
    assert create(started, GROUP, cluster) == "INVALID_REQUEST"
    assert (held(started), started.all(AclsDecision)) == (set(), [])
    assert create(started, cluster | {"resource_name": "kafka-cluster"}) == "NONE"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resource_type", "ANY"),
        ("pattern_type", "MATCH"),
        ("operation", "ANY"),
        ("permission_type", "UNKNOWN"),
        ("resource_name", ""),
        ("resource_name", "x" * 4_097),
        ("principal", "alice"),
        ("principal", ":alice"),
        ("host", ""),
    ],
)
def test_an_acl_that_cannot_be_is_malformed(field: str, value: str) -> None:
    started = world()
    started.publish_raw(started.text_of("create_acls", acls=[ALICE, ALICE | {field: value}]))
    assert started.one(Rejected).field == f"acls[1].{field}"
    assert held(started) == set()


def test_acls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "ACLS_MAX", 3)
    started = world()
    assert create(started, ALICE, BOB) == "NONE"
    assert create(started, GROUP, PREFIX) == "POLICY_VIOLATION"
    assert create(started, GROUP, BOB) == "NONE"
    monkeypatch.setattr(rules, "ACLS_MAX", 2)
    assert create(started, BOB) == "NONE", "nothing is added"
    assert delete(started, BOB) == [acl(BOB)]


def test_the_bytes_of_acls_are_bounded() -> None:
    started = world()
    many = [ALICE | {"resource_name": f"{number}-".ljust(4_000, "€")} for number in range(100)]
    assert create(started, *many[:50]) == "NONE"
    assert create(started, *many[50:]) == "POLICY_VIOLATION"
    assert len(held(started)) == 50


def test_as_many_bytes_of_acls_as_are_allowed_may_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(len(part) for part in ALICE.values())
    monkeypatch.setattr(rules, "ACLS_BYTES_MAX", size - 1)
    started = world()
    assert create(started, ALICE) == "POLICY_VIOLATION"
    monkeypatch.setattr(rules, "ACLS_BYTES_MAX", size)
    assert create(started, ALICE) == "NONE"


def test_open_filters_are_bounded() -> None:
    started = world()
    create(started, *ALL)
    asked = [{"principal": "User:alice"}, *({"principal": f"User:{n}"} for n in range(rules.OPEN_FILTERS_MAX))]
    started.publish("delete_acls", filters=asked, request_id="q")
    assert (started.error, started.all(AclsDecision)) == ("POLICY_VIOLATION", [])
    assert delete(started, *asked[1:]) == []
    assert started.error == "NONE"
    assert delete(started, *[ALICE | {"host": str(number)} for number in range(1_000)], BOB) == [acl(BOB)]


def test_without_a_metadata_log_there_are_no_acls() -> None:
    started = world(is_kraft=False)
    assert create(started, ALICE) == "UNSUPPORTED_VERSION"
    started.publish("delete_acls", filters=[{}], request_id="q")
    assert (started.error, started.all(AclsDecision)) == ("UNSUPPORTED_VERSION", [])


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_shard_0_alone_keeps_them_whatever_the_number_of_shards(shards: int) -> None:
    started = world()
    create(started, *ALL)
    delete(started, BOB)
    log = list(enumerate(started.log, start=1))
    told = decide(log, Policy(), shards=1).decisions
    decided = decide(log, Policy(), shards=shards)
    assert decided.decisions == told
    kept = [set(state.cluster.acls.values()) for state in decided.states]
    assert kept == [held(started), *[set()] * (shards - 1)]
    for after in (1, 2, 5):
        moved = resharded([state.cluster for state in decided.states], [], after)
        assert [bool(state.cluster.acls) for state in moved] == [True, *[False] * (after - 1)]
    assert [one["principal"] for one in decided.view()["acls"]] == ["User:alice"] * 4
