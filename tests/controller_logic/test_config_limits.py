"""Limits: each answer and each setting fits a message of every bus."""

import msgspec
import pytest

from bus.interface import Entry
from controller_logic.config_limits import (
    ENTITY_BYTES_MAX,
    KEYS_MAX,
    SHARED_BYTES_MAX,
    VALUE_BYTES_MAX,
    complaint_about_shared,
    complaint_about_size,
    size_of,
)
from controller_logic.replay import decide
from isrflow.kafka.limits import MESSAGE_BYTES_MAX
from state.canonical import RESULTS_MAX, bounded
from state.decisions import Answer, ConfigDecision, PartitionResult, TopicDecision, encode
from state.policy import Policy
from tests.support.world import World

BIG = "x" * VALUE_BYTES_MAX


@pytest.fixture
def world() -> World:
    world = World(1, 2)
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    world.create("t", (1, 2))
    return world


def alter(world: World, entity: str, name: str | None, config: dict[str, object]) -> Answer:
    world.publish("alter_config", entity=entity, name=name, config=config)
    return world.one(Answer)


@pytest.mark.parametrize(("entity", "name"), [("cluster", None), ("topic", "t"), ("broker", "1")])
def test_a_value_too_large_is_refused_by_name(world: World, entity: str, name: str | None) -> None:
    assert alter(world, entity, name, {"a.b": BIG}).error == "NONE"
    said = alter(world, entity, name, {"a.c": BIG + "x"})
    assert (said.error, said.message) == (
        "INVALID_CONFIG",
        f"the value of a.c has {VALUE_BYTES_MAX + 1} bytes: at most {VALUE_BYTES_MAX} are allowed",
    )
    # The limit counts bytes, not characters.
    assert alter(world, entity, name, {"a.c": "é" * (VALUE_BYTES_MAX // 2 + 1)}).error == "INVALID_CONFIG"


@pytest.mark.parametrize(("entity", "name"), [("cluster", None), ("topic", "t"), ("broker", "1")])
def test_settings_too_large_together_are_refused_until_made_smaller(world: World, entity: str, name: str) -> None:
    held = ENTITY_BYTES_MAX // VALUE_BYTES_MAX
    assert alter(world, entity, name, {f"k{nth}": BIG[:-2] for nth in range(held)}).error == "NONE"
    said = alter(world, entity, name, {"one.more": BIG})
    assert said.error == "INVALID_CONFIG"
    assert said.message.endswith(f"bytes: at most {ENTITY_BYTES_MAX} are allowed")
    assert alter(world, entity, name, {"k0": None, "one.more": "x"}).error == "NONE"


def test_too_many_settings_are_refused(world: World) -> None:
    many = {f"k{nth}": "" for nth in range(KEYS_MAX)}
    assert alter(world, "broker", "1", many).error == "NONE"
    said = alter(world, "broker", "1", {"one.more": ""})
    assert said.message == f"there would be {KEYS_MAX + 1} settings: at most {KEYS_MAX} are allowed"
    assert alter(world, "broker", "1", {"one.more": "", "k0": None}).error == "NONE"


def test_settings_on_all_shards_are_bounded_together(world: World) -> None:
    full = {f"k{nth}": BIG[:-2] for nth in range(ENTITY_BYTES_MAX // VALUE_BYTES_MAX)}
    errors = [alter(world, "broker", str(broker), full).error for broker in range(6)]
    assert errors[:4] == ["NONE"] * 4
    assert "INVALID_CONFIG" in errors
    said = alter(world, "cluster", None, full)
    assert said.message.startswith("the settings of cluster and brokers would have")
    assert said.message.endswith(f"at most {SHARED_BYTES_MAX} are allowed")
    assert alter(world, "broker", "0", {"k0": BIG[:-3]}).error == "NONE", "what it has replaces what it had"
    assert alter(world, "broker", "0", dict.fromkeys(full)).error == "NONE"
    # A topic's settings are stored in its own shard.
    assert alter(world, "topic", "t", full).error == "NONE"


def test_a_topic_is_not_created_with_settings_too_large(world: World) -> None:
    world.create("u", (1,), **{"a.b": BIG + "x"})
    assert world.one(Answer).error == "INVALID_CONFIG"
    world.create("u", (1,), **{"a.b": BIG})
    assert world.one(TopicDecision).config == {"a.b": BIG}


def test_settings_from_before_the_limits_may_become_fewer_and_smaller_but_not_more_or_larger() -> None:
    many = {f"k{nth:04}": "" for nth in range(KEYS_MAX + 2)}
    fewer = dict(list(many.items())[1:])
    assert complaint_about_size(many, many) is complaint_about_size(many, fewer) is None
    assert (
        complaint_about_size(fewer, many) == f"there would be {KEYS_MAX + 2} settings: at most {KEYS_MAX} are allowed"
    )
    large = {f"k{nth}": BIG for nth in range(ENTITY_BYTES_MAX // VALUE_BYTES_MAX + 1)}
    smaller = large | {"k0": BIG[:-1]}
    assert complaint_about_size(large, smaller) is complaint_about_size(large, large) is None
    assert complaint_about_size(smaller, large) is not None
    held, less = [large] * 5, [*[large] * 4, smaller]
    assert complaint_about_shared(held, less) is complaint_about_shared(held, held) is None
    assert complaint_about_shared(less, held) is not None


def test_settings_may_be_as_large_as_the_limits() -> None:
    full = {"a": "x" * VALUE_BYTES_MAX} | {f"{nth:03}": "x" * 1_021 for nth in range(223)}
    full["b"] = "x" * (ENTITY_BYTES_MAX - size_of(full) - 1)
    assert size_of(full) == ENTITY_BYTES_MAX
    assert complaint_about_size({}, full) is None
    assert complaint_about_shared([], [full] * (SHARED_BYTES_MAX // ENTITY_BYTES_MAX)) is None
    assert complaint_about_shared([], [full] * (SHARED_BYTES_MAX // ENTITY_BYTES_MAX) + [{"k": ""}]) is not None


def test_the_largest_settings_fit_a_message(world: World) -> None:
    # In JSON each of these characters is six bytes.
    value = "\x01" * (VALUE_BYTES_MAX - 8)
    for nth in range(ENTITY_BYTES_MAX // VALUE_BYTES_MAX):
        assert alter(world, "topic", "t", {f"k{nth}": value}).error == "NONE"
    assert len(encode(world.one(ConfigDecision))) < MESSAGE_BYTES_MAX / 2


def test_a_topic_has_no_more_replicas_than_an_answer_names() -> None:
    world = World(*range(12))
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    world.publish("create_topic", topic="t", partitions=100_000, replication_factor=11)
    said = world.one(Answer)
    assert (said.error, said.message) == (
        "INVALID_REPLICATION_FACTOR",
        "a topic has at most 1000000 replicas, not 1100000",
    )
    world.create("u", tuple(range(12)))
    world.publish("create_partitions", topic="u", total=90_000)
    assert world.one(Answer).error == "INVALID_REPLICATION_FACTOR"


def test_the_answer_to_the_largest_topic_fits_a_message() -> None:
    told = {str(number): tuple(range(2**31 - 10, 2**31)) for number in range(100_000)}
    assert len(msgspec.json.encode(told)) < MESSAGE_BYTES_MAX - 1024 * 1024


def test_an_election_in_too_many_partitions_is_refused(world: World) -> None:
    named = [{"topic": "t", "partition": nth} for nth in range(RESULTS_MAX + 1)]
    world.publish("elect_leaders", election_type="preferred", partitions=named)
    assert (world.one(Answer).error, world.one(Answer).message) == (
        "INVALID_REQUEST",
        f"name at most {RESULTS_MAX} partitions, not {RESULTS_MAX + 1}",
    )
    world.publish("elect_leaders", election_type="preferred", partitions=named[:-1])
    assert len(world.one(Answer).results) == RESULTS_MAX


def test_too_many_results_list_refusals_and_count_the_rest() -> None:
    done = [PartitionResult(topic="a", partition=nth, error="NONE", message="") for nth in range(RESULTS_MAX)]
    refused = [PartitionResult(topic="b", partition=nth, error="E", message="") for nth in range(3)]
    kept, left_out = bounded([*done, *refused], 5)
    assert (len(kept), left_out, kept[-3:]) == (RESULTS_MAX, 8, tuple(refused))
    assert kept == tuple(sorted(kept))
    halves, out = bounded(done[::2]), bounded([*done[1::2], *refused])
    assert bounded([*halves[0], *out[0]], 5) == (kept, left_out), "however many shards gave their part"


def test_unknown_topic_names_are_answered_once() -> None:
    events = [
        {"kind": "controller_started", "time_ms": 1, "controller_epoch": 1, "controller_id": 1},
        {
            "kind": "elect_leaders",
            "time_ms": 1,
            "election_type": "unclean",
            "partitions": [{"topic": "\x01" * 1_000, "partition": nth} for nth in range(1_000)],
        },
    ]
    raws = [msgspec.json.encode(event) for event in events]
    assert len(raws[1]) > 6_000_000
    entries = [Entry(seq, raw) for seq, raw in enumerate(raws, 1)]
    bodies = [body for _, _, body in decide(entries, Policy(), overrides={}).decisions]
    assert max(map(len, bodies)) < 1.1 * len(raws[1])
