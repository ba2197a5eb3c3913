"""The commands that show and change a cluster, on a bus that the rules decide in a thread."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import beat, epochs_of, publish, publish_isr, said, started, wait_for


def test_describe_has_kafkas_columns_and_tabs(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    done = isrflow("topics", "describe", "orders")
    topic, first, second = done.stdout.splitlines()
    assert topic.split("\t")[::2] == ["Topic: orders", "PartitionCount: 2", "Configs: "]
    assert topic.split("\t")[3] == "ReplicationFactor: 2"
    assert first == (
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\tLastKnownElr: N/A"
        "\tLeaderEpoch: 0\tPartitionEpoch: 0\tHighWatermark: 0"
    )
    assert second.startswith("\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2,1\t")


def test_the_four_filters_are_kafkas(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    assert said(isrflow, "topics", "alter", "orders", "--config", "min.insync.replicas=2")[0]["error"] == "NONE"

    def found(name: str) -> list[tuple[str, int]]:
        partitions = said(isrflow, "topics", "describe", f"--{name}-partitions")["partitions"]
        assert said(isrflow, "partitions", "list", f"--{name}-partitions") == [] or partitions
        return [(p["topic"], p["partition"]) for p in partitions]

    both = [("orders", 0), ("orders", 1)]
    assert [found(name) for name in ("under-replicated", "unavailable", "under-min-isr")] == [[], [], []]
    assert found("at-min-isr") == [("gone-soon", 0), *both]
    said(isrflow, "brokers", "fence", "1")
    assert found("unavailable") == [("gone-soon", 0)]
    assert found("under-replicated") == both
    assert found("under-min-isr") == both
    lines = isrflow("topics", "describe", "--unavailable-partitions").stdout.splitlines()
    assert [line.split("\t")[3] for line in lines] == ["Leader: none"], "Kafka prints no line for the topic here"


def test_a_topic_may_be_named_as_for_kafkas_tool(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    named = isrflow("topics", "describe", "--topic", "orders").stdout
    assert named == isrflow("topics", "describe", "orders").stdout
    assert isrflow("topics", "delete", "--topic", "orders", "--dry-run").exit_code == 0
    twice = isrflow("topics", "alter", "orders", "--topic", "orders", "--config", "min.insync.replicas=2")
    assert (twice.exit_code, "give the topic once" in twice.stderr) == (2, True)
    missing = isrflow("topics", "alter", "--config", "min.insync.replicas=2")
    assert (missing.exit_code, "Missing argument 'TOPIC'" in missing.stderr) == (2, True)


def test_a_dry_run_changes_nothing_and_decides_as_the_engine_then_does(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    before = cluster.last_seq()
    arguments = ("topics", "create", "clicks", "--replica-assignment", "1:2,2:3")
    would = said(isrflow, *arguments, "--dry-run")
    assert [event for event in cluster.read(before, cluster.last_seq()) if b"clicks" in event.raw] == []
    assert {decision["kind"] for decision in would} == {"topic", "leader_and_isr", "answer"}
    answer = said(isrflow, *arguments)[0]
    decided = [json.loads(one.body) for one in cluster.decisions((answer["seq"], -1), 100) if one.seq == answer["seq"]]

    def essence(decisions: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [(d["kind"], d.get("partition"), d.get("leader"), d.get("isr"), d["reason"]) for d in decisions]

    assert essence(would) == essence(decided)


def test_a_dry_run_knows_what_is_not_decided_yet(isrflow: Isrflow, tmp_path: Path) -> None:
    engine = started(tmp_path)
    engine.stop()
    bus = EmbeddedBus(tmp_path / "data" / "bus.db")
    publish(bus, kind="create_topic", topic="clicks", assignment={"0": [1]})
    bus.close()
    done = isrflow("topics", "create", "clicks", "--dry-run")
    assert done.exit_code == 1
    assert "TOPIC_ALREADY_EXISTS" in done.stderr


def test_a_dry_run_says_what_would_be_refused(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    done = isrflow("elect", "--election-type", "unclean", "--topic", "nowhere", "--partition", "0", "--dry-run")
    assert done.exit_code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in done.stderr


def test_leadership_is_transferred_and_stays(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    done = isrflow("partitions", "transfer-leadership", "orders-0", "--to", "2")
    assert done.stdout == "Broker 2 is the preferred replica of orders-0.\nBroker 2 leads orders-0.\n"
    partition = said(isrflow, "partitions", "describe", "orders-0")[0]
    assert (partition["leader"], partition["replicas"], partition["isr"]) == (2, [2, 1], [1, 2])
    assert isrflow("partitions", "transfer-leadership", "orders-0", "--to", "2").stdout == (
        "Broker 2 leads orders-0 already.\n"
    )
    done = isrflow("partitions", "transfer-leadership", "orders-0", "--to", "3")
    assert (done.exit_code, done.stderr) == (1, "Error: broker 3 is not in the ISR of orders-0: 1, 2.\n")


def _move(topic: str, partition: int, replicas: list[int]) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas, "log_dirs": ["any"] * len(replicas)}


def test_all_moves_are_cancelled_at_once(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    nothing = isrflow("reassign", "cancel", "--all")
    assert (nothing.exit_code, nothing.stdout) == (0, "No partition is being reassigned.\n")
    said(isrflow, "reassign", "execute", "--reassignment-json-file", "plan.json")
    done = isrflow("reassign", "cancel", "--all")
    assert done.stdout == "Cancelled the reassignment of orders-0.\n"
    assert said(isrflow, "reassign", "list")["partitions"] == []
    for both in ((), ("--all", "--reassignment-json-file", "plan.json")):
        wrong = isrflow("reassign", "cancel", *both)
        assert (wrong.exit_code, "exactly one of --reassignment-json-file and --all" in wrong.stderr) == (2, True)


def test_several_topics_are_deleted_together_or_not_at_all(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    refused = isrflow("topics", "delete", "orders", "gone", "--topic", "gone-soon")
    assert (refused.exit_code, "nothing is done" in refused.stderr) == (1, True)
    assert len(said(isrflow, "topics", "list")) == 2
    done = isrflow("topics", "delete", "orders", "gone", "--topic", "gone-soon", "--if-exists")
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        ["Topic orders is being deleted.", "There is no topic gone.", "Topic gone-soon is being deleted."],
    )


def test_a_reassignment_goes_from_generate_to_verify(isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path) -> None:
    plans = said(isrflow, "reassign", "generate", "--topics-to-move-json-file", "topics.json", "--broker-list", "1,2,3")
    assert plans["current"]["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "replicas": [1, 2],
        "log_dirs": ["any", "any"],
    }
    (tmp_path / "current.json").write_text(json.dumps(plans["current"]))
    plan = ("--reassignment-json-file", "plan.json")
    said(isrflow, "reassign", "execute", *plan)
    moves = said(isrflow, "reassign", "list")
    assert moves == {"version": 1, "partitions": [_move("orders", 0, [2, 3])]}
    assert said(isrflow, "reassign", "verify", *plan, code=1)[0]["status"] == "in_progress"
    again = isrflow("reassign", "execute", *plan)
    assert (again.exit_code, "a reassignment is under way" in again.stderr) == (1, True)
    publish_isr(cluster, said(isrflow, "partitions", "describe", "orders-0")[0], (1, 2, 3))
    assert said(isrflow, "reassign", "verify", *plan)[0]["status"] == "complete"
    said(isrflow, "reassign", "execute", "--reassignment-json-file", "current.json")
    (tmp_path / "listed.json").write_text(json.dumps(said(isrflow, "reassign", "list")))
    said(isrflow, "reassign", "cancel", "--reassignment-json-file", "listed.json")
    assert said(isrflow, "reassign", "list") == {"version": 1, "partitions": []}
    assert said(isrflow, "partitions", "describe", "orders-0")[0]["replicas"] == [2, 3]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"version":2,"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}', "version is 2: expected 1"),
        ('{"version":1,"partitions":[]}', "names nothing"),
        ('{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[]}]}', "$.partitions[0].replicas"),
        ('{"version":1,"partitions":[{"topic":"orders","partition":0,"replica":[1]}]}', "unknown field `replica`"),
        (
            '{"version":1,"partitions":[{"topic":"o","partition":0,"replicas":[1,2],"log_dirs":["any","/x"]}]}',
            "o-0 names the log directory /x",
        ),
        (
            '{"version":1,"partitions":[{"topic":"o","partition":0,"replicas":[1,2],"log_dirs":["any"]}]}',
            "o-0 has 2 replicas and 1 log_dirs",
        ),
        ("{", "Input data was truncated"),
    ],
)
def test_a_wrong_plan_is_named(isrflow: Isrflow, tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    done = isrflow("reassign", "execute", "--reassignment-json-file", "plan.json")
    assert done.exit_code == 2
    assert wrong in done.stderr


def test_elections_have_kafkas_rules_of_use(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    preferred = ("elect", "--election-type", "preferred")
    for arguments in (
        ("elect", "--all-topic-partitions"),
        preferred,
        (*preferred, "--topic", "orders"),
        (*preferred, "--partition", "0"),
        (*preferred, "--all-topic-partitions", "--path-to-json-file", "elect.json"),
        (*preferred, "--all-topic-partitions", "--topic", "orders", "--partition", "0"),
    ):
        assert isrflow(*arguments).exit_code == 2, arguments
    done = isrflow(*preferred, "--topic", "orders", "--partition", "0")
    assert (done.exit_code, done.stdout) == (0, "orders-0: no election is needed: broker 1 leads already\n")
    assert isrflow(*preferred, "--all-topic-partitions").stdout == "No partition needs an election.\n"


def test_an_election_shows_every_partition_and_ends_with_1_if_one_has_no_leader_to_elect(
    isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path
) -> None:
    """The error of the whole answer is that of its first partition by name, which may be a harmless one."""
    assert isrflow("brokers", "fence", "2").exit_code == 0
    document = {"partitions": [{"topic": "orders", "partition": n} for n in (0, 1)]}
    (tmp_path / "mixed.json").write_text(json.dumps(document))
    done = isrflow("elect", "--election-type", "preferred", "--path-to-json-file", "mixed.json")
    assert (done.exit_code, done.stdout) == (1, "orders-0: no election is needed: broker 1 leads already\n")
    told = "Error: orders-1: PREFERRED_LEADER_NOT_AVAILABLE: broker 2 is not in sync and online\n"
    assert done.stderr == told


def test_an_unclean_election_says_which_leader_may_lack_records(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    for broker in (1, 2):
        assert isrflow("brokers", "fence", str(broker)).exit_code == 0
    wait_for(cluster, beat(cluster, 1, epochs_of(cluster)[1]))
    done = isrflow("elect", "--election-type", "unclean", "--topic", "orders", "--partition", "0")
    assert (done.exit_code, done.stdout) == (
        0,
        "orders-0: broker 1 was elected in leader epoch 3; it was not in sync, so records may be lost\n",
    )


def test_a_broker_that_serves_is_not_unregistered_by_mistake(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    done = isrflow("brokers", "unregister", "1")
    assert done.exit_code == 1
    assert re.fullmatch(
        r"Error: broker 1 is active: stop it first, or use --force\. A broker that has stopped counts as active "
        r"until its session ends, 60 min after it was last heard; that was \d+ s ago\.\n",
        done.stderr,
    )
    assert isrflow("brokers", "unregister", "4").exit_code == 0
    assert [row["broker"] for row in said(isrflow, "brokers", "list")] == [1, 2, 3]
    assert "there is no broker 4" in isrflow("brokers", "describe", "4").stderr


def test_a_broker_with_the_last_in_sync_replica_is_not_unregistered_by_mistake(
    isrflow: Isrflow, cluster: EmbeddedBus
) -> None:
    assert isrflow("brokers", "fence", "1").exit_code == 0
    told = (
        "broker 1 has the last in-sync replica of 1 partition: gone-soon-0. "
        "Without the broker they have no leader, unless an unclean election loses records."
    )
    refused = isrflow("brokers", "unregister", "1")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == f"Error: {told} Move or delete them, bring the broker back, or use --force.\n"
    dry = isrflow("brokers", "unregister", "1", "--dry-run")
    assert (dry.exit_code, dry.stderr) == (0, f"{told}\n")
    assert "would decide: broker 1" in dry.stdout
    forced = isrflow("brokers", "unregister", "1", "--force")
    assert (forced.exit_code, forced.stdout, forced.stderr) == (0, "Broker 1 is unregistered.\n", f"{told}\n")
    explained = isrflow("partitions", "explain", "gone-soon-0")
    assert "Broker 1 is no longer registered." in explained.stdout


def test_a_refusal_is_said_once(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    """The rules answer such a request, and also reject it as an event."""
    done = isrflow("brokers", "unregister", "9")
    assert (done.exit_code, done.stderr) == (1, "Error: BROKER_ID_NOT_REGISTERED: broker 9 is not registered\n")


def test_a_broker_that_is_fenced_already_gives_no_answer_in_json(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    done = isrflow("brokers", "fence", "4", "--format", "json")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "[]\n", "Broker 4 is fenced already.\n")


def test_a_request_without_an_engine_ends_with_3(isrflow: Isrflow, tmp_path: Path) -> None:
    started(tmp_path).stop()
    done = isrflow("topics", "delete", "orders", "--timeout-ms", "50")
    assert done.exit_code == 3
    assert done.stderr.endswith("The engine will not begin it after this time: is the engine running?\n")


def test_paths_lead_through_the_state(isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path) -> None:
    assert isrflow("state", "cat", "/topics/orders/partitions/0/leader").stdout == "1\n"
    tree = isrflow("state", "tree", "/topics", "--depth", "1").stdout
    assert '  orders/\n    topic = "orders"' in tree
    assert "    partitions/ (2)" in tree
    done = isrflow("state", "cat", "/topics/order")
    assert (done.exit_code, done.stderr) == (1, "Error: there is no 'order' in /topics; did you mean 'orders'?\n")
    (tmp_path / "state.json").write_text(json.dumps(said(isrflow, "describe")))
    assert isrflow("state", "cat", "/brokers/1/state", "--state", "state.json").stdout == '"active"\n'
    (tmp_path / "state.json").write_text("[]")
    assert isrflow("state", "tree", "--state", "state.json").exit_code == 2
