"""What one failure would cost, on a bus that the rules decide in a thread."""

import re

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import said


def test_each_broker_and_rack_has_its_cost(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    found = said(isrflow, "risk", "--format", "json")
    assert found["counts"] == {"offline": 0, "under_min_isr": 0, "one_failure_from_offline": 1, "at_min_isr": 1}
    assert found["brokers"][0] == {
        "broker": 1,
        "state": "active",
        "offline": 1,
        "refusing_writes": 0,
        "leaders_moved": 1,
    }
    assert [one["broker"] for one in found["brokers"]] == [1, 2, 3, 4]
    assert found["racks"][0] == {"rack": "r1", "offline": 1, "refusing_writes": 0, "leaders_moved": 1}
    [partition] = found["partitions"]
    assert (partition["topic"], partition["risks"]) == ("gone-soon", ["one_failure_from_offline", "at_min_isr"])


def test_the_worst_partitions_come_first_and_the_others_are_counted(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    said(isrflow, "brokers", "fence", "1")
    lines = isrflow("risk", "--limit", "1").stdout.splitlines()
    assert re.match("LostBroker +State +Offline +RefusingWrites +LeadersMoved$", lines[6])
    assert re.match("2 +active +2 +0 +0$", lines[7])
    assert re.match("gone-soon +0 +none +1 +1 +- +1 +offline,at_min_isr$", lines[-3])
    assert lines[-1] == "2 more partitions at risk; --limit shows more."
    assert len(said(isrflow, "risk", "--limit", "0", "--format", "json")["partitions"]) == 0


def test_a_bus_without_a_state_is_told(isrflow: Isrflow) -> None:
    assert isrflow("risk", "--bus", "gone.db").exit_code == 3
