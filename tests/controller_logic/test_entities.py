"""Metadata entities in the state: checked, kept, bounded, removed, and only where they can become records."""

from typing import Any

import pytest

from controller_logic import entities as rules
from controller_logic.replay import decide
from controller_logic.resharding import resharded
from state.decisions import EntityDecision
from state.entity import entity_id_of
from state.features import METADATA_VERSION
from state.policy import Policy
from state.reason import Reason
from state.stored.codec import decode_cluster, encode_cluster
from state.view import view_of
from tests.controller_logic import test_acls
from tests.support.world import World

ALICE: dict[str, str | None] = {"user": "alice"}


def world() -> World:
    return test_acls.world()


def alter(started: World, entity_type: str, names: dict[str, str | None], values: dict[str, Any], **more: Any) -> str:
    fields = {"entity_type": entity_type, "names": names, "values": values}
    started.publish("alter_entity", **fields, request_id="q", **more)
    return str(started.error)


def quota(started: World, names: dict[str, str | None], **more: Any) -> str:
    return alter(started, "client_quota", names, {"producer_byte_rate": 1024}, **more)


def held(started: World) -> dict[str, dict[str, str]]:
    return {entity_id: one.values for entity_id, one in started.state.cluster.entities.items()}


def test_an_entity_is_set_changed_and_removed() -> None:
    started = world()
    assert quota(started, ALICE, principal="User:admin") == "NONE"
    decision = started.one(EntityDecision)
    assert (decision.reason, decision.principal) == (Reason.ENTITY_CHANGED, "User:admin")
    assert (decision.entity_type, decision.names) == ("client_quota", ALICE)
    assert decision.values == {"producer_byte_rate": "1024.0"}
    assert quota(started, ALICE) == "NONE"
    assert started.all(EntityDecision) == [], "nothing changed"
    assert alter(started, "client_quota", ALICE, {"request_percentage": "50"}) == "NONE"
    assert held(started) == {
        entity_id_of("client_quota", ALICE): {"producer_byte_rate": "1024.0", "request_percentage": "50.0"}
    }
    assert alter(started, "client_quota", ALICE, {"request_percentage": None, "producer_byte_rate": None}) == "NONE"
    assert started.one(EntityDecision).values == {}
    assert held(started) == {}


def test_what_is_only_validated_is_not_set() -> None:
    started = world()
    assert quota(started, ALICE, validate_only=True) == "NONE"
    assert alter(started, "client_quota", ALICE, {"nothing": 1}, validate_only=True) == "INVALID_REQUEST"
    assert (started.all(EntityDecision), held(started)) == ([], {})


def test_the_order_of_the_parts_of_a_name_does_not_count() -> None:
    started = world()
    quota(started, {"user": None, "client-id": "c"})
    quota(started, {"client-id": "c", "user": None})
    assert started.all(EntityDecision) == []
    assert len(held(started)) == 1


def test_the_metadata_version_is_chosen_before_the_log_begins_and_then_only_raised() -> None:
    started = World()
    started.publish("controller_started", controller_id="c", controller_epoch=1)
    started.tick()
    for level in (29, 21):
        assert alter(started, "features", {}, {METADATA_VERSION: level}) == "NONE"
    gateway = {"gateway": 100, "incarnation": "g", "voters": [100]}
    started.publish("gateway_started", **gateway, is_kraft=True)
    assert alter(started, "features", {}, {METADATA_VERSION: 25}) == "NONE"
    assert alter(started, "features", {}, {METADATA_VERSION: 25}) == "NONE"
    assert started.all(EntityDecision) == [], "nothing changed"
    for wrong in (21, 24, 30, None):
        assert alter(started, "features", {}, {METADATA_VERSION: wrong}) == "INVALID_UPDATE_VERSION"
    assert held(started) == {entity_id_of("features", {}): {METADATA_VERSION: "25"}}


def test_levels_of_kafka_4_3_and_later_may_be_chosen_once_every_process_of_isrflow_knows_them() -> None:
    started = World()
    started.publish("controller_started", controller_id="c", controller_epoch=1, level=2)
    started.tick()
    assert alter(started, "features", {}, {METADATA_VERSION: 30}) == "INVALID_UPDATE_VERSION"
    started.publish("raise_level", level=2, request_id="q")
    assert alter(started, "features", {}, {METADATA_VERSION: 34}) == "INVALID_UPDATE_VERSION"
    assert alter(started, "features", {}, {METADATA_VERSION: 30}) == "NONE"
    started.publish("gateway_started", gateway=100, incarnation="g", voters=[100], is_kraft=True, level=2)
    newest = {METADATA_VERSION: 33, "share.version": 2}
    assert alter(started, "features", {}, newest) == "NONE"
    assert held(started) == {entity_id_of("features", {}): {METADATA_VERSION: "33", "share.version": "2"}}


def test_only_its_gateway_checks_that_a_broker_supports_the_levels_in_force() -> None:
    """Shard 0 alone knows the levels."""
    started = world()
    assert alter(started, "features", {}, {"transaction.version": 2, "group.version": 0}) == "NONE"
    levels = [{"name": "transaction.version", "min_version": 0, "max_version": 1}]
    who = {"broker": 1, "incarnation": "i", "log_dirs": ["d"], "behind_gateway": True, "request_id": "r"}
    started.publish("broker_register", **who, features=levels)
    assert started.error == "NONE"


def test_without_a_metadata_log_its_version_is_not_raised() -> None:
    started = test_acls.world(is_kraft=False)
    assert alter(started, "features", {}, {METADATA_VERSION: 28}) == "UNSUPPORTED_VERSION"
    assert held(started) == {}


NOBODY: dict[str, str | None] = {}
ADDRESS: dict[str, str | None] = {"ip": "10.0.0.1"}
GROUP: dict[str, str | None] = {"group": "g"}
METRICS: dict[str, str | None] = {"client-metrics": "m"}
BOB: dict[str, str | None] = {"user": "bob", "mechanism": "SCRAM-SHA-256"}
KEY = "A" * 43 + "="
CREDENTIAL: dict[str, Any] = {"iterations": 4096, "salt": "c2FsdA==", "server_key": KEY, "stored_key": KEY}
REFUSED: list[tuple[str, dict[str, str | None], dict[str, Any], str]] = [
    ("client_quota", NOBODY, {"producer_byte_rate": 1}, "INVALID_REQUEST"),
    ("client_quota", {"group": "g"}, {"producer_byte_rate": 1}, "INVALID_REQUEST"),
    ("client_quota", {"user": ""}, {"producer_byte_rate": 1}, "INVALID_REQUEST"),
    ("client_quota", {"user": "a", "ip": "10.0.0.1"}, {"connection_creation_rate": 1}, "INVALID_REQUEST"),
    ("client_quota", {"ip": "no address"}, {"connection_creation_rate": 1}, "INVALID_REQUEST"),
    ("client_quota", ADDRESS, {"producer_byte_rate": 1}, "INVALID_REQUEST"),
    ("client_quota", ADDRESS, {"connection_creation_rate": 2**31}, "INVALID_REQUEST"),
    ("client_quota", ALICE, {"connection_creation_rate": 1}, "INVALID_REQUEST"),
    ("client_quota", ALICE, {"producer_byte_rate": 0}, "INVALID_REQUEST"),
    ("client_quota", ALICE, {"producer_byte_rate": -1}, "INVALID_REQUEST"),
    ("client_quota", ALICE, {"producer_byte_rate": 1.5}, "INVALID_REQUEST"),
    ("client_quota", ALICE, {"producer_byte_rate": "inf"}, "INVALID_REQUEST"),
    ("client_quota", ALICE, {"request_percentage": "nan"}, "INVALID_REQUEST"),
    ("client_quota", ALICE, {"request_percentage": "much"}, "INVALID_REQUEST"),
    ("group", {"group": ""}, {"consumer.session.timeout.ms": 50000}, "INVALID_REQUEST"),
    ("group", {"group": None}, {"consumer.session.timeout.ms": 50000}, "INVALID_REQUEST"),
    ("group", ALICE, {"consumer.session.timeout.ms": 50000}, "INVALID_REQUEST"),
    ("group", GROUP, {"no.such.setting": 1}, "INVALID_CONFIG"),
    ("group", GROUP, {"consumer.session.timeout.ms": "soon"}, "INVALID_CONFIG"),
    ("group", GROUP, {"consumer.session.timeout.ms": 44999}, "INVALID_CONFIG"),
    ("group", GROUP, {"share.record.lock.duration.ms": 60001}, "INVALID_CONFIG"),
    ("group", GROUP, {"share.auto.offset.reset": "by_duration:tomorrow"}, "INVALID_CONFIG"),
    ("group", GROUP, {"share.isolation.level": "read"}, "INVALID_CONFIG"),
    ("client_metrics", {"client-metrics": ""}, {"interval.ms": 100}, "INVALID_REQUEST"),
    ("client_metrics", GROUP, {"interval.ms": 100}, "INVALID_REQUEST"),
    ("client_metrics", METRICS, {"interval": 100}, "INVALID_REQUEST"),
    ("client_metrics", METRICS, {"interval.ms": 99}, "INVALID_REQUEST"),
    ("client_metrics", METRICS, {"interval.ms": 3_600_001}, "INVALID_REQUEST"),
    ("client_metrics", METRICS, {"interval.ms": "x"}, "INVALID_CONFIG"),
    ("client_metrics", METRICS, {"match": "client_id"}, "INVALID_CONFIG"),
    ("client_metrics", METRICS, {"match": "color=red"}, "INVALID_CONFIG"),
    ("client_metrics", METRICS, {"match": "client_id=(?P<a>x)"}, "INVALID_CONFIG"),
    ("client_metrics", METRICS, {"match": "client_id=["}, "INVALID_CONFIG"),
    ("client_metrics", METRICS, {"metrics": "x" * 32768}, "INVALID_CONFIG"),
    ("features", {"cluster": "c"}, {"share.version": 1}, "INVALID_REQUEST"),
    ("features", {}, {"share.version": 2}, "INVALID_UPDATE_VERSION"),
    ("features", {}, {"share.version": "one"}, "INVALID_UPDATE_VERSION"),
    # The number 1 in digits that Python reads too, and in more of them than any level has.
    ("features", {}, {"share.version": "\u0661"}, "INVALID_UPDATE_VERSION"),
    ("features", {}, {"share.version": "000001"}, "INVALID_UPDATE_VERSION"),
    ("features", {}, {"eligible.leader.replicas.version": 1}, "INVALID_UPDATE_VERSION"),
    ("scram_credential", {"user": "bob"}, CREDENTIAL, "INVALID_REQUEST"),
    ("scram_credential", BOB | {"user": ""}, CREDENTIAL, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB | {"mechanism": "SCRAM-SHA-1"}, CREDENTIAL, "UNSUPPORTED_SASL_MECHANISM"),
    ("scram_credential", BOB | {"mechanism": "SCRAM-SHA-512"}, CREDENTIAL, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"iterations": 4095}, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"iterations": 16385}, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"iterations": "many"}, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"iterations": "\u0664\u0660\u0669\u0666"}, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"stored_key": "not base64"}, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"salt": "c2FsdA== "}, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"salt": "A" * 2000}, "UNACCEPTABLE_CREDENTIAL"),
    ("scram_credential", BOB, CREDENTIAL | {"password": "x"}, "INVALID_REQUEST"),
    ("scram_credential", BOB, {"iterations": 4096}, "INVALID_REQUEST"),
    ("scram_credential", BOB, dict.fromkeys(CREDENTIAL), "RESOURCE_NOT_FOUND"),
]


@pytest.mark.parametrize(("entity_type", "names", "values", "error"), REFUSED)
def test_a_change_that_kafka_refuses_is_refused(
    entity_type: str, names: dict[str, str | None], values: dict[str, Any], error: str
) -> None:
    started = world()
    assert alter(started, entity_type, names, values) == error
    assert (started.all(EntityDecision), held(started)) == ([], {})


ALLOWED: list[tuple[str, dict[str, str | None], dict[str, Any]]] = [
    ("client_quota", {"user": None}, {"producer_byte_rate": 1, "controller_mutation_rate": 0.5}),
    ("client_quota", {"user": "a", "client-id": None}, {"consumer_byte_rate": float(2**63)}),
    ("client_quota", {"ip": None}, {"connection_creation_rate": 10}),
    ("client_quota", {"ip": "::1"}, {"connection_creation_rate": 2**31 - 1}),
    ("group", GROUP, {"consumer.session.timeout.ms": 45000, "consumer.heartbeat.interval.ms": "15000"}),
    ("group", GROUP, {"share.auto.offset.reset": "by_duration:PT1H30M", "share.isolation.level": "read_committed"}),
    ("scram_credential", BOB, CREDENTIAL),
    ("scram_credential", BOB, CREDENTIAL | {"iterations": 16_384}),
    ("client_metrics", METRICS, {"interval.ms": 3_600_000}),
    ("client_metrics", METRICS, {"metrics": "", "interval.ms": 100, "match": "client_id=a.*,client_source_port=9092"}),
]


@pytest.mark.parametrize(("entity_type", "names", "values"), ALLOWED)
def test_a_change_that_kafka_allows_is_allowed(
    entity_type: str, names: dict[str, str | None], values: dict[str, Any]
) -> None:
    started = world()
    assert alter(started, entity_type, names, values) == "NONE"
    assert set(started.one(EntityDecision).values) == set(values)


def test_entities_wait_for_a_metadata_log() -> None:
    started = World()
    started.claim()
    assert quota(started, ALICE) == "UNSUPPORTED_VERSION"
    started.publish("gateway_started", gateway=100, incarnation="h", voters=[100], is_kraft=True)
    assert quota(started, ALICE) == "NONE"


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "ENTITIES_MAX", 2)
    started = world()
    assert [quota(started, {"user": name}) for name in "abc"] == ["NONE", "NONE", "POLICY_VIOLATION"]
    assert alter(started, "client_quota", {"user": "a"}, {"producer_byte_rate": 2}) == "NONE", (
        "the held ones may change"
    )
    monkeypatch.setattr(rules, "ENTITIES_BYTES_MAX", 10)
    assert alter(started, "client_quota", {"user": "a"}, {"producer_byte_rate": 3}) == "POLICY_VIOLATION"


def test_ids_names_and_values_count_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    started = world()
    assert quota(started, {"user": "é"}) == "NONE"
    [(entity_id, values)] = held(started).items()
    size = sum(len(text.encode()) for text in (entity_id, *values.keys(), *values.values()))
    for most, error in ((size, "NONE"), (size - 1, "POLICY_VIOLATION")):
        monkeypatch.setattr(rules, "ENTITIES_BYTES_MAX", most)
        assert quota(world(), {"user": "é"}) == error


def test_shard_0_alone_keeps_entities_and_decides_as_one_shard_does() -> None:
    started = world()
    quota(started, ALICE)
    cluster = started.state.cluster
    assert decode_cluster(encode_cluster(cluster)) == cluster
    first, second = resharded([cluster], [], 2)
    assert (first.cluster.entities, second.cluster.entities) == (cluster.entities, {})
    assert [one["names"] for one in view_of(cluster, [])["entities"]] == [ALICE]


def test_a_replay_gives_the_same_decisions() -> None:
    started = world()
    quota(started, ALICE)
    alter(started, "group", GROUP, {"consumer.session.timeout.ms": 50000})
    log = list(enumerate(started.log, start=1))
    decided = [decide(log, Policy(), shards=shards).decisions for shards in (1, 3)]
    assert decided[0] == decided[1]
    bodies = [str(one) for one in decided[0]]
    assert sum("ENTITY_CHANGED" in body for body in bodies) == 2


def test_a_level_waits_until_every_broker_supports_it() -> None:
    started = world()
    knows = [{"name": "share.version", "min_version": 0, "max_version": 1}]
    started.join(1, features=knows)
    started.join(2)
    assert alter(started, "features", {}, {"share.version": 1}) == "INVALID_UPDATE_VERSION"
    started.publish("broker_unregister", broker=2)
    assert alter(started, "features", {}, {"share.version": 1}) == "NONE"
    assert started.one(EntityDecision).values == {"share.version": "1"}
    assert alter(started, "features", {}, {"share.version": 0}) == "NONE"


def test_all_shards_register_a_broker_that_does_not_support_a_level() -> None:
    started = world()
    started.join(1, features=[{"name": "share.version", "min_version": 0, "max_version": 1}])
    assert alter(started, "features", {}, {"share.version": 1}) == "NONE"
    started.publish("broker_register", broker=2, incarnation="i", behind_gateway=True, features=[], request_id="r")
    shards = decide(list(enumerate(started.log, start=1)), Policy(), shards=3).states
    assert [held.cluster.brokers[2].incarnation for held in shards] == ["i", "i", "i"]
