"""The state on the command line."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.interface import Page
from state.broker import BrokerState
from state.cluster import Cluster
from state.features import ELIGIBLE_LEVEL, ELIGIBLE_VERSION
from state.stored.codec import encode_cluster, encode_topics
from tests.cli.conftest import Isrflow, broker, partition, topic

TABLE = """\
ControllerEpoch: 1  Seq: 6  TimeMs: 1000

Broker  BrokerEpoch  State   Rack  Backlog
1       1            active  r1    0
2       2            active  -     0
3       3            fenced  -     0

Topic   TopicId       State    Configs
audit   id-of-audit   created  min.insync.replicas=2
orders  id-of-orders  created  min.insync.replicas=2

Topic   Partition  Leader  Replicas  Isr    Adding  Removing  State             LeaderEpoch  PartitionEpoch  HighWatermark
audit   0          none    1,2,3     3      -       -         OfflinePartition  4            7               42
orders  0          1       1,2,3     1,2,3  -       -         OnlinePartition   4            7               42
orders  1          2       1,2,3     1,2    -       -         OnlinePartition   4            7               42
"""  # noqa: E501


def test_the_table_uses_kafkas_words(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    assert isrflow("describe").stdout == TABLE


def test_an_old_state_is_reported(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    assert "s old: is the engine running?" in isrflow("describe").stderr


@pytest.mark.parametrize(("skew_ms", "said"), [(3_600_000, "3600 s ahead of"), (-60_000, "60 s behind")])
def test_a_skewed_clock_is_reported(isrflow: Isrflow, bus: EmbeddedBus, skew_ms: int, said: str) -> None:
    entered_ms = now_ms()
    cluster = Cluster(seq=7, clock_ms=entered_ms + skew_ms, clock_entered_ms=entered_ms, controller_epoch=1)
    bus.commit(1, 7, [], [Page(0, -1, encode_cluster(cluster))])
    done = isrflow("describe")
    assert done.stderr == f"The engine's clock is {said} the bus's.\n"
    assert f"TimeMs: {entered_ms + skew_ms}  ClockSkewMs: {skew_ms}" in done.stdout


def test_json_is_the_view_of_the_contract(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    view = json.loads(isrflow("describe", "--format", "json").stdout)
    assert list(view) == [
        "controller_epoch",
        "seq",
        "time_ms",
        "clock_skew_ms",
        "brokers",
        "topics",
        "partitions",
    ]
    assert [(p["topic"], p["partition"]) for p in view["partitions"]] == [("audit", 0), ("orders", 0), ("orders", 1)]
    assert view["partitions"][0]["replica_states"] == {"1": "OnlineReplica", "2": "OnlineReplica", "3": "OnlineReplica"}


@pytest.mark.parametrize(
    ("arguments", "partitions"),
    [
        (["--topic", "orders"], [("orders", 0), ("orders", 1)]),
        (["--under-replicated"], [("audit", 0), ("orders", 1)]),
        (["--under-replicated-partitions"], [("audit", 0), ("orders", 1)]),
        (["--unavailable"], [("audit", 0)]),
        (["--unavailable-partitions"], [("audit", 0)]),
        (["--under-min-isr"], [("audit", 0)]),
        (["--at-min-isr-partitions"], [("orders", 1)]),
        (["--topic", "orders", "--under-replicated"], [("orders", 1)]),
        (["--broker", "3", "--unavailable"], [("audit", 0)]),
    ],
)
def test_filters_choose_the_partitions(
    isrflow: Isrflow, bus: EmbeddedBus, arguments: list[str], partitions: list[tuple[str, int]]
) -> None:
    view = json.loads(isrflow("describe", "--format", "json", *arguments).stdout)
    assert [(p["topic"], p["partition"]) for p in view["partitions"]] == partitions
    assert {t["topic"] for t in view["topics"]} == {topic for topic, _ in partitions}


def test_an_unknown_topic_or_broker_is_refused(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    for arguments, said in (
        (["describe", "--topic", "x"], "there is no topic 'x'"),
        (["describe", "--broker", "9"], "there is no broker 9; 'isrflow brokers list' lists all of them."),
        (["partitions", "list", "--broker", "9"], "there is no broker 9"),
        (["partitions", "list", "--led-by", "9"], "there is no broker 9"),
    ):
        done = isrflow(*arguments)
        assert done.exit_code == 1
        assert said in done.stderr


def test_a_broker_that_is_no_longer_registered_may_still_have_replicas(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    cluster = Cluster(seq=7, clock_ms=1_000, controller_epoch=1, brokers={1: broker(1, BrokerState.active)})
    bus.commit(1, bus.publish([b"{}"]), [], [Page(0, -1, encode_cluster(cluster))])
    view = json.loads(isrflow("describe", "--format", "json", "--broker", "3").stdout)
    assert (view["brokers"], len(view["partitions"])) == ([], 3)
    assert len(json.loads(isrflow("partitions", "list", "--format", "json", "--broker", "3").stdout)) == 3
    assert json.loads(isrflow("partitions", "list", "--format", "json", "--led-by", "3").stdout) == []


@pytest.mark.parametrize(
    "command",
    [
        ("describe", "--topic", "order"),
        ("topics", "describe", "order"),
        ("partitions", "describe", "order-0"),
        ("partitions", "transfer-leadership", "order-0", "--to", "2"),
    ],
)
def test_a_mistyped_topic_is_answered_with_the_nearest_one(
    isrflow: Isrflow, bus: EmbeddedBus, command: tuple[str, ...]
) -> None:
    done = isrflow(*command)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (
        1,
        "Error: there is no topic 'order'; did you mean 'orders'?",
    )


def test_without_a_state_the_error_names_the_next_command(isrflow: Isrflow) -> None:
    EmbeddedBus("data/bus.db").close()
    for at in ((), ("--at", "0")):
        done = isrflow("describe", *at)
        assert done.exit_code == 3
        assert done.stderr == (
            "Error: the bus data/bus.db has no state yet: if its engine has just started, wait some seconds; "
            "otherwise start one with 'isrflow run'.\n"
        )


def test_a_file_that_is_not_a_bus_is_named(isrflow: Isrflow, tmp_path: Path) -> None:
    (tmp_path / "bus.db").write_text("this is not a database, though long enough to look like one" * 10)
    done = isrflow("describe", "--bus", "bus.db")
    assert done.exit_code == 3
    assert done.stderr == "Error: bus.db is not a bus: expected a SQLite file\n"


@pytest.fixture
def eligible_bus(bus: EmbeddedBus) -> EmbeddedBus:
    """The bus of a cluster with eligible leader replicas, where t-0 has no leader and t-1 is in sync."""
    on = Cluster(seq=7, controller_epoch=1, level=ELIGIBLE_LEVEL, config={ELIGIBLE_VERSION: "1"})
    offline = replace(partition(0, -1, ()), elr=(2, 3), last_known_elr=(1,))
    pages = [Page(0, -1, encode_cluster(on)), Page(0, 0, encode_topics([topic("t", offline, partition(1, 1, (1, 2)))]))]
    bus.commit(1, 7, [], pages)
    return bus


def test_topics_describe_has_kafkas_columns_of_eligible_replicas(isrflow: Isrflow, eligible_bus: EmbeddedBus) -> None:
    _, first, second = isrflow("topics", "describe", "t").stdout.splitlines()
    assert first.split("\t")[5:8] == ["Isr: ", "Elr: 2,3", "LastKnownElr: 1"]
    assert second.split("\t")[5:8] == ["Isr: 1,2", "Elr: ", "LastKnownElr: "]


def test_partitions_list_has_columns_of_eligible_replicas_where_there_are_any(
    isrflow: Isrflow, eligible_bus: EmbeddedBus
) -> None:
    head, first, second = isrflow("partitions", "list", "--topic", "t").stdout.splitlines()
    assert head.split()[-2:] == ["Elr", "LastKnownElr"]
    assert (first.split()[-2:], second.split()[-2:]) == (["2,3", "1"], ["-", "-"])
    head, only = isrflow("partitions", "list", "--led-by", "1", "--topic", "t").stdout.splitlines()
    assert (head.split()[-1], only.split()[-1]) == ("HighWatermark", "42")
    rows = json.loads(isrflow("partitions", "list", "--topic", "t", "--format", "json").stdout)
    assert [(row["elr"], row["last_known_elr"]) for row in rows] == [([2, 3], [1]), ([], [])]


def test_partitions_list_without_eligible_replicas_has_no_field_for_them(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    assert "Elr" not in isrflow("partitions", "list").stdout
    rows = json.loads(isrflow("partitions", "list", "--format", "json").stdout)
    assert rows and not any("elr" in row or "last_known_elr" in row for row in rows)


def test_partitions_describe_shows_eligible_replicas_where_there_are_any(
    isrflow: Isrflow, eligible_bus: EmbeddedBus
) -> None:
    offline, online = isrflow("partitions", "describe", "t-0", "t-1").stdout.split("\n\n")
    fields = dict(map(str.split, filter(lambda line: "Elr" in line, offline.splitlines())))
    assert fields == {"Elr:": "2,3", "LastKnownElr:": "1"}
    assert "Elr" not in online
    shown = json.loads(isrflow("partitions", "describe", "t-0", "--format", "json").stdout)
    assert (shown[0]["elr"], shown[0]["last_known_elr"]) == ([2, 3], [1])
