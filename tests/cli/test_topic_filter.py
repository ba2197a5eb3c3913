"""Commands of a topic find whatever names it, in any place of an event or decision."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Isrflow
from tests.support.decided_bus import DecidedBus

# Partition, leader epoch, partition epoch, ISR.
ROW = [0, 0, 0, [1]]
EVENTS = [
    {"kind": "broker_register", "broker": 1, "incarnation": "a"},
    {"kind": "broker_heartbeat", "broker": 1, "broker_epoch": 1, "want_fence": False, "want_shutdown": False},
    {"kind": "create_topic", "topic": "orders", "assignment": {"0": [1]}, "request_id": "q"},
    {"kind": "create_topic", "topic": "other", "assignment": {"0": [1]}, "request_id": "q"},
    {"kind": "alter_config", "entity": "topic", "name": "orders", "config": {"min.insync.replicas": "2"}},
    {"kind": "alter_config", "entity": "topic", "name": "other", "config": {"min.insync.replicas": "2"}},
    {
        "kind": "elect_leaders",
        "election_type": "preferred",
        "partitions": [{"topic": name, "partition": 0} for name in ("other", "orders")],
        "request_id": "q",
    },
    {
        "kind": "alter_isrs",
        "broker": 1,
        "broker_epoch": 1,
        "request_id": "q",
        "topics": [{"topic": name, "partitions": [ROW]} for name in ("other", "orders")],
    },
    {"kind": "create_partitions", "topic": "orders", "total": "many", "partitions": 5},
    {"kind": "elect_leaders", "election_type": "preferred", "partitions": [{"topic": "other", "partition": 0}]},
    {"kind": "delete_topic", "topic": 5, "topics": [5, {"topic": ["orders"]}]},
]


@pytest.fixture(autouse=True)
def _bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = DecidedBus(tmp_path / "bus.db")
    bus.take([json.dumps({"time_ms": 0, **event}).encode() for event in EVENTS])
    bus.close()
    monkeypatch.setenv("ISRFLOW_BUS", str(tmp_path / "bus.db"))


def test_events_that_name_the_topic_in_any_place_are_found(isrflow: Isrflow) -> None:
    done = isrflow("events", "--topic", "orders")
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == [3, 5, 7, 8, 9]


def test_a_malformed_event_is_found_by_its_kind(isrflow: Isrflow) -> None:
    assert json.loads(isrflow("events", "--kind", "delete_topic").stdout)["seq"] == 11


def test_decisions_that_name_the_topic_in_any_place_are_found(isrflow: Isrflow) -> None:
    done = isrflow("decisions", "--topic", "orders")
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(one["seq"], one["kind"]) for one in found} >= {(3, "topic"), (5, "config"), (7, "answer")}
    assert not {4, 6, 10} & {one["seq"] for one in found}


@pytest.mark.parametrize("command", ["events", "decisions", "describe", "partitions list"])
def test_a_topic_may_be_named_as_an_argument_too(isrflow: Isrflow, command: str) -> None:
    with_option = isrflow(*command.split(), "--topic", "orders")
    with_argument = isrflow(*command.split(), "orders")
    assert with_option.exit_code == 0, with_option.output
    assert with_argument.stdout == with_option.stdout
    assert with_argument.stdout != isrflow(*command.split()).stdout


def test_a_topic_that_is_named_twice_is_refused(isrflow: Isrflow) -> None:
    done = isrflow("describe", "orders", "--topic", "orders")
    assert done.exit_code == 2
    assert "give the topic once: as an argument, or with --topic" in done.output
