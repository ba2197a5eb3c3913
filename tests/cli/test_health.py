"""The health of a cluster, on a bus that the rules decide in a thread."""

import re
from pathlib import Path

from bus.embedded import EmbeddedBus
from cli.committed import Committed
from cli.health import judged
from state.cluster import Cluster
from state.partition import Topic, TopicState
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import beat, epochs_of, said
from tests.sinks.web.test_partitions import partition


def test_health_and_a_broker_say_since_when_it_does_not_serve(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    assert said(isrflow, "brokers", "fence", "3")[0]["error"] == "NONE"
    found = said(isrflow, "health", code=1)
    [away] = [one for one in found["away"] if one["broker"] == 3]
    assert (away["state"], away["reason"]) == ("fenced", "BROKER_ASKED_FENCE")
    assert away["heard_ms"] <= away["since_ms"]
    assert "broker 3 is fenced" in found["reasons"], "what programs compare stays as it was"
    told = r"fenced for [0-9]+ s, since 2[0-9T:-]+Z \(BROKER_ASKED_FENCE\)$"
    assert re.search(f"^Reason: +broker 3 is {told}", isrflow("health").stdout, re.MULTILINE)
    assert re.search(f"^State: +{told}", isrflow("brokers", "describe", "3").stdout, re.MULTILINE)
    # Its heartbeats go on.
    later = said(isrflow, "brokers", "describe", "3")["away"]
    assert later | {"heard_ms": away["heard_ms"]} == away
    assert said(isrflow, "brokers", "describe", "2")["away"] is None
    assert re.search(r"^3 +fenced .* [0-9]+ s *$", isrflow("top", "--once").stdout, re.MULTILINE)


def test_health_says_what_it_cannot_know(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    # On this bus no decision is about broker 3, which was last heard in 1970.
    told = r"broker 3 is fenced, since when is not known; last heard [0-9]+ days ago, at 1970-01-01T00:00:01Z$"
    assert re.search(told, isrflow("health").stdout, re.MULTILINE)
    assert said(isrflow, "health", code=2)["away"][0]["since_ms"] is None


def test_health_has_three_exit_codes(isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path) -> None:
    assert said(isrflow, "health", code=1)["reasons"] == ["broker 4 is fenced"]
    assert isrflow("brokers", "unregister", "4").exit_code == 0
    found = said(isrflow, "health")
    assert (found["status"], found["reasons"], found["brokers"]) == ("healthy", [], 3)
    assert 0 <= found["last_commit_age_ms"] < 10_000
    assert found["controller_id"] == "rules-engine"
    assert re.search("^Controller: +rules-engine$", isrflow("health").stdout, re.MULTILINE)
    assert said(isrflow, "health", "--max-age-ms", "1", code=2)["status"] == "unknown"
    missing = said(isrflow, "health", "--bus", "gone.db", code=2)
    assert missing["reasons"][0].startswith("there is no bus at gone.db")
    assert said(isrflow, "brokers", "fence", "3")[0]["error"] == "NONE"
    # Wrong use has the same code, and says nothing on standard output.
    wrong = isrflow("health", "--max-age-ms", "soon")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    done = isrflow("health", "--exit-when-healthy", "--timeout-ms", "1")
    assert done.exit_code == 1
    assert "Reason:" in done.stdout


def test_a_restart_waits_while_a_partition_has_no_spare_replica(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    assert isrflow("brokers", "unregister", "4").exit_code == 0
    # gone-soon has one replica, which min.insync.replicas=1 needs. orders has two.
    found = said(isrflow, "health", "--min-spare", "1", code=1)
    reason = "1 partition has fewer in-sync replicas than min.insync.replicas + 1: gone-soon-0"
    assert (found["reasons"], found["without_spare"]) == ([reason], ["gone-soon-0"])
    said(isrflow, "health", "--min-spare", "0")
    assert isrflow("topics", "delete", "--topic", "gone-soon").exit_code == 0
    assert said(isrflow, "health", "--min-spare", "1")["without_spare"] == []
    two = said(isrflow, "health", "--min-spare", "2", code=1)
    assert two["without_spare"] == ["orders-0", "orders-1"]


def test_a_watch_ends_when_the_cluster_is_healthy(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    assert isrflow("brokers", "unregister", "4").exit_code == 0
    said(isrflow, "brokers", "fence", "3")
    beat(cluster, 3, epochs_of(cluster)[3])
    done = isrflow("health", "--exit-when-healthy", "--timeout-ms", "20000")
    assert done.exit_code == 0, done.output
    assert re.match(r"2[0-9-]+T[0-9:]+Z\nHealth: ", done.stdout), "each print of a watch has its time"


def test_one_partition_is_told_in_the_singular(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    said(isrflow, "brokers", "fence", "1")
    reasons = said(isrflow, "health", code=1)["reasons"]
    assert "1 partition is offline" in reasons
    assert "2 partitions are under replicated" in reasons


def test_the_worst_partitions_are_named_first() -> None:
    short = {
        "a": ((1, 2, 3, 4, 5), (1, 2, 3, 4), 1),
        "b": ((1, 2, 3, 4, 5), (1, 2, 3), 1),
        "c": ((1, 2, 3), (1, 2), 1),
        "d": ((1, 2, 3, 4), (1, 2), 1),
        "e": ((1, 2, 3), (1,), -1),
    }
    topics = {
        name: Topic(
            name,
            "id",
            TopicState.created,
            {"min.insync.replicas": "2"},
            (partition(0, replicas=replicas, isr=isr, leader=leader),),
        )
        for name, (replicas, isr, leader) in short.items()
    }
    details = judged(Committed(Cluster(), topics)).details
    assert details["offline"] == ["e-0"]
    assert details["at_min_isr"] == ["d-0", "c-0"]
    assert details["under_replicated"] == ["b-0", "d-0", "e-0", "a-0", "c-0"]
