"""The last line of every dry run: what the decisions would do to the cluster."""

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import epochs_of, publish, publish_isr, said, wait_for


@pytest.mark.parametrize(
    ("arguments", "total"),
    [
        (
            ("brokers", "fence", "1"),
            "in total: 1 partition goes offline, 1 leader moves, 2 ISRs shrink",
        ),
        (("topics", "create", "clicks", "--partitions", "3"), "in total: 3 partitions are added"),
        (("topics", "delete", "orders"), "in total: 2 partitions are deleted"),
        (
            ("elect", "--election-type", "preferred", "--all-topic-partitions"),
            "in total: no leader moves, and no ISR changes",
        ),
    ],
)
def test_a_dry_run_ends_with_what_it_would_do(
    isrflow: Isrflow, cluster: EmbeddedBus, arguments: tuple[str, ...], total: str
) -> None:
    assert isrflow(*arguments, "--dry-run").stdout.splitlines()[-1] == total
    as_json = isrflow(*arguments, "--dry-run", "--format", "json")
    assert (as_json.stderr.splitlines()[-1], as_json.stdout.count("\n")) == (total, 1)


def test_a_partition_that_would_refuse_writes_is_counted(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    said(isrflow, "topics", "alter", "orders", "--config", "min.insync.replicas=2")
    last = isrflow("brokers", "fence", "2", "--dry-run").stdout.splitlines()[-1]
    assert last == "in total: 2 partitions refuse writes with acks=all, 1 leader moves, 2 ISRs shrink"


def test_an_unclean_election_says_how_many_records_are_at_risk(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    def ends(broker: int, end: int) -> None:
        epochs = {"broker_epoch": epochs_of(cluster)[broker], "leader_epoch": 0}
        place = {"topic": "orders", "partition": 0, "broker": broker}
        wait_for(cluster, publish(cluster, kind="log_end_offset", **place, **epochs, log_end_offset=end))

    publish_isr(cluster, said(isrflow, "topics", "describe", "orders")["partitions"][0], (1,))
    ends(2, 40)
    ends(1, 100)
    said(isrflow, "brokers", "fence", "1")
    arguments = ("elect", "--election-type", "unclean", "--topic", "orders", "--partition", "0")
    last = isrflow(*arguments, "--dry-run").stdout.splitlines()[-1]
    assert last.startswith("in total: 1 election is unclean, ")
    assert last.endswith(", 60 records are at risk")
    said(isrflow, *arguments)
    told = isrflow("partitions", "explain", "orders-0").stdout
    assert "  Records at risk: 60. The ISR had reported them, and broker 2 had not." in told.splitlines()


def test_that_the_records_at_risk_are_not_known_is_said(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    publish_isr(cluster, said(isrflow, "topics", "describe", "orders")["partitions"][0], (1,))
    said(isrflow, "brokers", "fence", "1")
    arguments = ("elect", "--election-type", "unclean", "--topic", "orders", "--partition", "0", "--dry-run")
    assert isrflow(*arguments).stdout.splitlines()[-1].endswith(", an unknown number of records are at risk")
