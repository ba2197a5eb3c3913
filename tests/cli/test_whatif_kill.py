"""What the loss of brokers would do, on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Isrflow
from tests.support.decided_bus import DecidedBus
from tests.support.observing import TOPIC_ID, Row, Shadow, broker, partition
from tests.support.world import World

RACKS = {1: "a", 2: "a", 3: "b"}


def bus_of(world: World, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = DecidedBus(path / "bus.db")
    bus.take(world.log)
    bus.close()
    monkeypatch.setenv("ISRFLOW_BUS", str(path / "bus.db"))


@pytest.fixture
def led(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a bus on which a cluster is led."""
    world = World()
    for number, rack in RACKS.items():
        world.join(number, rack=rack)
    world.create("alone", (1,))
    world.create("moves", (1, 2, 3), (3, 2, 1))
    world.create("strict", (2, 1), min_insync_replicas="2")
    bus_of(world, tmp_path, monkeypatch)


@pytest.fixture
def observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a shadow of a cluster with the same partitions."""
    world = Shadow()
    names = {"alone": TOPIC_ID, "moves": "4Yt2vYOBQ0mUFi8VF2mBZw", "strict": "yPyXdOiRQmKXN5YgA8LQ6g"}
    rows: list[Row] = [partition(0, (1,), (1,), 1, (0, 0), "alone")]
    for number, replicas in enumerate([(1, 2, 3), (3, 2, 1)]):
        rows.append(partition(number, replicas, replicas, replicas[0], (0, 0), "moves"))
    rows.append(partition(0, (2, 1), (2, 1), 2, (0, 0), "strict"))
    world.observe(
        "seed",
        brokers=[broker(number, rack=rack) for number, rack in RACKS.items()],
        topics=[{"topic": name, "topic_id": topic_id} for name, topic_id in names.items()],
        partitions=rows,
        settings=[{"entity_type": "topic", "entity": "strict", "key": "min.insync.replicas", "value": "2"}],
    )
    bus_of(world, tmp_path, monkeypatch)


KINDS = pytest.mark.parametrize("kind", ["led", "observed"])


@KINDS
def test_the_loss_of_a_broker_is_shown(isrflow: Isrflow, kind: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(kind)
    done = isrflow("whatif", "--kill", "1")
    assert done.exit_code == 0, done.output
    head, *lines = done.stdout.splitlines()
    assert head.startswith("What if broker 1 were lost, as of seq ")
    assert lines == [
        "  offline: 1 partition",
        "  refusing_writes: 1 partition",
        "  leader_moved: 1 partition",
        "  broker 2 leads 1 more",
        "  acknowledged records left on one disk: not known, because log ends are not reported",
        "",
        "Topic   Partition  Effect           Leader  NewLeader  Isr    NewIsr  MinIsr",
        "alone   0          offline          1       none       1      1       1",
        "strict  0          refusing_writes  2       2          2,1    2       2",
        "moves   0          leader_moved     1       2          1,2,3  2,3     1",
    ]


@KINDS
def test_the_loss_of_a_rack_is_shown_as_json(isrflow: Isrflow, kind: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(kind)
    done = isrflow("whatif", "--kill", "rack:a", "--format", "json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["lost"] == [1, 2]
    assert document["counts"] == {"offline": 2, "unclean": 0, "refusing_writes": 0, "leader_moved": 1}
    assert document["new_leaders"] == {"3": 1}
    assert (document["records_on_one_disk"], document["records_at_risk"]) == (None, 0)
    names = [(one["topic"], one["partition"], one["effect"]) for one in document["partitions"]]
    assert names == [
        ("alone", 0, "offline"),
        ("strict", 0, "offline"),
        ("moves", 0, "leader_moved"),
    ]


@pytest.mark.usefixtures("led")
def test_the_loss_is_that_of_another_moment_or_under_other_settings(isrflow: Isrflow) -> None:
    done = isrflow("whatif", "--kill", "3", "--to", "7")
    assert done.stdout == (
        "What if broker 3 were lost, as of seq 7:\n  every partition keeps its leader and accepts writes.\n"
        "  acknowledged records left on one disk: 0\n"
    )
    done = isrflow("whatif", "--kill", "3", "--to", "2")
    assert "--kill 3: expected a registered broker or rack, one of 1, rack:a." in done.stderr
    done = isrflow("whatif", "--kill", "1", "--set", "min.insync.replicas=3")
    assert "  refusing_writes: 3 partitions\n" in done.stdout


@pytest.mark.usefixtures("led")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kill", "9"], "--kill 9: expected a registered broker or rack, one of 1, 2, 3, rack:a, rack:b."),
        (["--kill", "rack:c"], "--kill rack:c: expected a registered broker or rack"),
        (["--kill", "1", "--without-event", "3"], "--kill needs a state only"),
    ],
)
def test_what_cannot_be_lost_is_wrong_use(isrflow: Isrflow, arguments: list[str], said: str) -> None:
    done = isrflow("whatif", *arguments)
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


def test_the_records_that_are_left_on_one_disk_are_counted(
    isrflow: Isrflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(1, 2, 3)
    world.create("pair", (1, 2))
    world.create("alone", (1,))
    world.create("risky", (1, 3), **{"unclean.leader.election.enable": "true"})
    world.offsets("pair", b1=100, b2=100)
    world.offsets("alone", b1=40)
    world.offsets("risky", b1=50, b3=50)
    world.alter_isr("risky", (1,))
    world.offsets("risky", b1=80, b3=50)
    world.tick()
    bus_of(world, tmp_path, monkeypatch)
    lines = isrflow("whatif", "--kill", "1").stdout.splitlines()
    # Broker 2 is the only one left with 100, broker 1 with 40, and broker 3 with 50.
    assert "  acknowledged records left on one disk: 190" in lines
    assert "  records that unclean elections may lose: 30" in lines
