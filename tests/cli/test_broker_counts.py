"""How often brokers failed lately."""

import re

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import beat, epochs_of, publish, publish_isr, said, wait_for


def test_fencings_restarts_and_smaller_isrs_are_counted(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    publish_isr(cluster, said(isrflow, "topics", "describe", "orders")["partitions"][0], (1,))
    said(isrflow, "brokers", "fence", "3")
    wait_for(cluster, beat(cluster, 3, epochs_of(cluster)[3]))
    said(isrflow, "brokers", "fence", "3")
    wait_for(cluster, publish(cluster, kind="broker_register", broker=3, incarnation="b"))
    rows = {row["broker"]: row for row in said(isrflow, "brokers", "list", "--counts")}
    assert rows[3]["last_hour"] == rows[3]["last_day"] == {"fencings": 2, "restarts": 1, "isr_shrinks": 0}
    assert rows[2]["last_day"] == {"fencings": 0, "restarts": 0, "isr_shrinks": 1}
    assert set(rows[1]["last_day"].values()) == {0}
    head, *_, third, _ = isrflow("brokers", "list", "--counts").stdout.splitlines()
    assert head.split()[-3:] == ["Fencings(1h/1d)", "Restarts(1h/1d)", "IsrShrinks(1h/1d)"]
    assert re.search(r"^3 .* 2/2 +1/1 +0/0$", third)


def test_an_isr_that_shrinks_while_a_broker_is_fenced_says_nothing_about_that_broker(
    isrflow: Isrflow, cluster: EmbeddedBus
) -> None:
    isrflow("topics", "create", "wide", "--partitions", "1", "--replication-factor", "3")
    said(isrflow, "brokers", "fence", "3")
    shown = said(isrflow, "topics", "describe", "wide")["partitions"][0]
    publish_isr(cluster, shown, (shown["leader"],))
    rows = {row["broker"]: row["last_day"]["isr_shrinks"] for row in said(isrflow, "brokers", "list", "--counts")}
    assert rows == {broker: int(broker in shown["isr"] and broker != shown["leader"]) for broker in (1, 2, 3, 4)}
    assert sum(rows.values()) == 1


def test_counts_are_of_now(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    done = isrflow("brokers", "list", "--counts", "--at", "5")
    assert (done.exit_code, "--counts looks back from now" in done.stderr) == (2, True)
