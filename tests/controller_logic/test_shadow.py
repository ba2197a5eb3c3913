"""A bus that is the shadow of a cluster: how it becomes one, what it refuses, and whose clock it has."""

import pytest

from state.decisions import LevelDecision, Rejected
from state.divergence import Divergence
from state.level import SHADOW_LEVEL
from state.shadow import Shadow as Mark
from tests.support.observing import CLUSTER, TOPIC_ID, Shadow, broker, partition
from tests.support.world import World

REFUSED = "SHADOW_REFUSED"


def refusal(world: World) -> tuple[str, str, str]:
    found = world.one(Rejected)
    return found.reason, found.field, found.message


def test_the_first_observation_makes_a_new_bus_a_shadow_of_the_second_level() -> None:
    world = Shadow()
    world.observe("seed", offset=7)
    assert world.state.cluster.shadow == Mark(CLUSTER, 7, 7)
    assert world.state.cluster.level == world.one(LevelDecision).level == SHADOW_LEVEL
    world.observe("other")
    assert world.decisions == []


def test_a_bus_on_which_a_cluster_is_led_does_not_become_a_shadow() -> None:
    world = Shadow()
    world.join(1)
    before = world.state.cluster.level
    world.observe("seed")
    assert refusal(world) == (REFUSED, "kind", "a cluster is led on this bus; a shadow begins on a new one")
    assert (world.state.cluster.shadow, world.state.cluster.level) == (None, before)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("broker_register", {"broker": 1, "incarnation": "a"}),
        ("create_topic", {"topic": "t", "partitions": 1, "replication_factor": 1}),
        ("gateway_started", {"gateway": 100, "incarnation": "a", "voters": (100,)}),
    ],
)
def test_nothing_is_led_on_a_shadow(kind: str, fields: dict[str, object]) -> None:
    world = Shadow()
    world.observe("seed")
    world.publish(kind, request_id="r", **fields)
    assert refusal(world) == (REFUSED, "kind", f"this bus is the shadow of cluster {CLUSTER}, and only observes it")
    assert world.error == "INVALID_REQUEST"
    cluster = world.state.cluster
    assert (cluster.brokers, cluster.gateways, world.state.topics.names()) == ({}, {}, [])


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"cluster_id": "another"}, "cluster_id", f"this bus is the shadow of cluster {CLUSTER}"),
        ({"offset": 9, "last_offset": 8}, "last_offset", "expected 9 or more, the offset"),
        ({"part": 2, "parts": 2}, "part", "expected less than 2, the parts"),
        ({"offset": 9, "part": 1, "parts": 2}, "part", "expected 0 of the operation at offset 9"),
    ],
)
def test_an_observation_that_cannot_be_is_refused(fields: dict[str, object], field: str, message: str) -> None:
    world = Shadow()
    world.observe("seed")
    world.observe("other", brokers=[broker(1)], **fields)
    assert refusal(world) == (REFUSED, field, message)
    assert world.state.cluster.shadow == Mark(CLUSTER, 1, 1)


def test_an_operation_that_was_observed_is_skipped_and_one_that_broke_off_begins_again() -> None:
    world = Shadow()
    world.observe("seed", offset=5)
    world.observe("other", offset=5)
    world.observe("other", offset=4)
    assert world.decisions == []
    world.observe("other", offset=6, part=0, parts=3)
    world.observe("other", offset=6, part=1, parts=3)
    world.observe("other", offset=7)
    assert refusal(world) == (REFUSED, "offset", "expected 6, of which part 2 of 3 is missing")
    world.observe("other", offset=6, part=0, parts=3)
    assert world.state.cluster.shadow == Mark(CLUSTER, 6, 6, 0, 3)
    for part in (1, 2):
        world.observe("other", offset=6, part=part, parts=3)
    world.observe("other", offset=7)
    assert world.state.cluster.shadow == Mark(CLUSTER, 7, 7)


def test_the_clock_of_a_shadow_is_that_of_the_observed_log() -> None:
    world = Shadow()
    world.now = 1_000_000
    world.claim()
    world.entered_ms = 1_000_000
    world.observe("seed", time_ms=5_000)
    assert world.state.cluster.clock_ms == 5_000
    world.tick(60_000)
    world.claim()
    assert world.state.cluster.clock_ms == 5_000
    world.observe("other", time_ms=4_000)
    assert world.state.cluster.clock_ms == 5_000
    world.observe("other", time_ms=6_000)
    assert (world.state.cluster.clock_ms, world.state.cluster.clock_skew_ms) == (6_000, None)


def test_a_reader_that_goes_on_moves_the_clock_and_nothing_else() -> None:
    world = Shadow()
    world.observe("seed", offset=5, last_offset=7, brokers=[broker(1)])
    world.entered_ms = 61_040
    world.observe("no_change", time_ms=61_000, offset=7)
    cluster = world.state.cluster
    assert (cluster.clock_ms, world.decisions) == (61_000, [])
    assert cluster.shadow == Mark(CLUSTER, 5, 7, heard_ms=61_040)
    assert cluster.shadow.lag_ms(cluster.clock_ms) == 40
    # From then on every observation says so too.
    world.entered_ms = 62_100
    world.observe("other", time_ms=62_000, offset=8)
    assert world.state.cluster.shadow == Mark(CLUSTER, 8, 8, heard_ms=62_100)


def test_what_is_told_beside_the_log_counts_only_at_the_newest_operation() -> None:
    world = Shadow()
    world.observe("no_change", offset=3)
    assert world.state.cluster.shadow is None
    world.observe("seed", offset=5)
    world.entered_ms = 61_040
    for offset in (4, 6):
        world.observe("no_change", time_ms=61_000, offset=offset)
        assert (world.state.cluster.shadow, world.decisions) == (Mark(CLUSTER, 5, 5), [])
    world.observe("other", offset=6, part=0, parts=2)
    world.observe("no_change", time_ms=61_000, offset=6)
    assert world.state.cluster.shadow == Mark(CLUSTER, 6, 6, 0, 2)


def test_settings_of_the_controllers_file_count_below_dynamic_ones_and_above_those_of_a_claim() -> None:
    world = Shadow()
    first = partition(0, (1, 2), (1, 2), 1, (0, 0))
    world.observe(
        "seed", brokers=[broker(1), broker(2)], topics=[{"topic": "t", "topic_id": TOPIC_ID}], partitions=[first]
    )
    world.publish("controller_started", controller_id="a", controller_epoch=1, settings={"min.insync.replicas": "1"})
    assert world.state.cluster.totals.at_min_isr == 0
    told = {"min.insync.replicas": "2", "unclean.leader.election.enable": "true", "log.dirs": "/secret"}
    rows = [{"entity_type": "controller", "entity": "101", "key": key, "value": told[key]} for key in sorted(told)]
    world.observe("static_settings", offset=1, settings=rows)
    cluster = world.state.cluster
    assert cluster.shadow is not None
    assert "log.dirs" not in cluster.shadow.static_settings, "no rule reads it"
    assert (cluster.policy.min_insync_replicas, cluster.policy.unclean_leader_election_enable) == (2, True)
    assert (cluster.totals.at_min_isr, world.decisions) == (1, [])
    dynamic = {"entity_type": "cluster", "entity": "", "key": "min.insync.replicas", "value": "1"}
    world.observe("settings_changed", settings=[dynamic])
    assert world.state.cluster.policy.min_insync_replicas == 1


@pytest.mark.parametrize(("unclean", "differing"), [("true", []), ("false", ["isr", "leader"])])
def test_what_the_controller_does_is_compared_under_the_settings_of_its_file(
    unclean: str, differing: list[str]
) -> None:
    world = Shadow()
    topic = {"topic": "t", "topic_id": TOPIC_ID}
    brokers = [broker(1), broker(2)]
    world.observe("seed", brokers=brokers, topics=[topic], partitions=[partition(0, (1, 2), (1,), 1, (0, 0))])
    row = {"entity_type": "controller", "entity": "101", "key": "unclean.leader.election.enable", "value": unclean}
    world.observe("static_settings", offset=1, settings=[row])
    elected = partition(0, (1, 2), (2,), 2, (1, 1), leader_recovery_state="RECOVERING")
    world.observe("session_expired", evidence={"broker": 1}, brokers=[broker(1, fenced=True)], partitions=[elected])
    assert sorted(one.field for one in world.all(Divergence)) == differing
