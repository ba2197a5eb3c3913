"""Commands that take a list carry it out as a whole or not at all."""

import json
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import fence, publish, publish_isr, said, wait_for


@pytest.mark.parametrize("unknown", ["absent", "zebra"])
def test_nobody_is_elected_if_a_file_names_a_partition_that_is_not_there(
    isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path, unknown: str
) -> None:
    wait_for(cluster, publish(cluster, kind="alter_reassignment", topic="orders", partition=1, replicas=[1, 2]))
    document = {
        "partitions": [{"topic": "orders", "partition": n} for n in (0, 1)] + [{"topic": unknown, "partition": 7}]
    }
    (tmp_path / "mixed.json").write_text(json.dumps(document))
    elect = ("elect", "--election-type", "preferred", "--path-to-json-file", "mixed.json")
    before = cluster.last_seq()
    for arguments in ((*elect, "--dry-run"), elect):
        done = isrflow(*arguments)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == (
            "Error: nothing is done, because some of it would be refused:\n"
            f"  {unknown}-7: UNKNOWN_TOPIC_OR_PARTITION: there is no partition {unknown}-7\n"
        )
    assert b"elect_leaders" not in b"".join(event.raw for event in cluster.read(before, cluster.last_seq()))


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_plan_is_begun_as_a_whole_or_not_at_all(
    isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path, dry_run: tuple[str, ...]
) -> None:
    moves = {0: [2, 3], 1: [1, 3, 3]}
    partitions = [{"topic": "orders", "partition": n, "replicas": replicas} for n, replicas in moves.items()]
    partitions.append({"topic": "gone-soon", "partition": 0, "replicas": [1, 1070]})
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": partitions}))
    before = said(isrflow, "describe")["partitions"]
    done = isrflow("reassign", "execute", "--reassignment-json-file", "plan.json", *dry_run)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: nothing is done, because some of it would be refused:\n"
        "  orders-1: INVALID_REPLICA_ASSIGNMENT: [1, 3, 3] names a broker twice\n"
        "  gone-soon-0: INVALID_REPLICA_ASSIGNMENT: brokers [1070] are added and not active\n"
    )
    assert said(isrflow, "describe")["partitions"] == before


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_no_move_is_cancelled_if_the_plan_names_a_partition_that_is_not_there(
    isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path, dry_run: tuple[str, ...]
) -> None:
    said(isrflow, "reassign", "execute", "--reassignment-json-file", "plan.json")
    moves = [("orders", 0), ("orders", 7), ("zebra", 0)]
    partitions = [{"topic": topic, "partition": number, "replicas": [1, 2]} for topic, number in moves]
    (tmp_path / "mixed.json").write_text(json.dumps({"version": 1, "partitions": partitions}))
    done = isrflow("reassign", "cancel", "--reassignment-json-file", "mixed.json", *dry_run)
    assert (done.exit_code, done.output) == (1, "Error: there are no partitions orders-7, zebra-0.\n")
    left = said(isrflow, "reassign", "list")["partitions"]
    assert [(one["topic"], one["partition"]) for one in left] == [("orders", 0)]


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_leadership_is_transferred_as_a_whole_or_not_at_all(
    isrflow: Isrflow, cluster: EmbeddedBus, dry_run: tuple[str, ...]
) -> None:
    """The election of a fenced broker would be refused, and the new order of replicas would stay."""
    publish_isr(cluster, said(isrflow, "partitions", "describe", "orders-1")[0], (2,))
    fence(cluster, 2)
    wait_for(cluster, publish(cluster, kind="alter_reassignment", topic="orders", partition=1, replicas=[1, 2]))
    before = said(isrflow, "partitions", "describe", "orders-1")
    done = isrflow("partitions", "transfer-leadership", "orders-1", "--to", "2", *dry_run)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: nothing is done, because some of it would be refused:\n  orders-1: ")
    assert said(isrflow, "partitions", "describe", "orders-1") == before


def test_of_a_list_of_elections_those_that_can_be_held_are(
    isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path
) -> None:
    """As with Kafka's tool, a partition that no broker can lead now does not stop the other elections."""
    publish_isr(cluster, said(isrflow, "partitions", "describe", "orders-1")[0], (2,))
    for number, replicas in enumerate(([2, 1], [1, 2])):
        publish(cluster, kind="alter_reassignment", topic="orders", partition=number, replicas=replicas)
    wait_for(cluster, cluster.last_seq())
    partitions = [{"topic": "orders", "partition": number} for number in (1, 0)]
    (tmp_path / "elect.json").write_text(json.dumps({"partitions": partitions}))
    done = isrflow("elect", "--election-type", "preferred", "--path-to-json-file", "elect.json")
    assert done.exit_code == 1
    assert done.stdout == "orders-0: broker 2 was elected in leader epoch 2\n"
    assert done.stderr == "Error: orders-1: PREFERRED_LEADER_NOT_AVAILABLE: broker 1 is not in sync and online\n"
