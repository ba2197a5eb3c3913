"""Kafka's own classes read the metadata log as a broker does, and know what the rules know."""

import re
from collections import Counter
from pathlib import Path

import pytest

from brokers.gateways.kraft.log import entries, snapshots
from state.broker import BrokerState
from state.cluster import State
from state.ids import NO_EPOCH
from state.partition import Partition, TopicState
from state.policy import Policy
from tests.brokers.gateways.kraft.storages import follow, opened
from tests.real_kafka.kafkas_classes import run_java
from tests.support.decided_bus import DecidedBus
from tests.support.random_logs import seeded_draws, walk
from tests.support.scenes import Draw

pytestmark = pytest.mark.kraft
POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
EVENTS = 400
SOURCE = Path(__file__).with_name("Images.java")


def joined(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))


def expected_image(state: State) -> str:
    """Write the rules' state in the format in which the oracle writes a broker's image."""
    brokers = [
        f"{b.broker}:{b.broker_epoch}:{b.state == BrokerState.fenced}:{b.state == BrokerState.controlled_shutdown}"
        f":{b.rack or ''}:{len(b.log_dirs)}".replace("True", "true").replace("False", "false")
        for _, b in sorted(state.cluster.brokers.items())
    ]
    partitions: dict[str, str] = {}
    of_all = {**state.cluster.config, **state.cluster.in_force}
    configs = {f"4//{key}": value for key, value in of_all.items()}
    for name, config in state.cluster.broker_config.items():
        configs |= {f"4/{name}/{key}": value for key, value in config.items()}
    for name in state.topics.names():
        topic = state.topics.get(name)
        if topic is None or topic.state != TopicState.created:
            continue
        partitions[name] = f"{name}={topic.topic_id}"
        configs |= {f"2/{name}/{key}": value for key, value in topic.config.items()}
        for partition in topic.partitions:
            if partition.leader_epoch != NO_EPOCH:
                place = f"{name}-{partition.partition}"
                partitions[place] = partition_told(place, partition)
    settings = " ".join(f"{key}={value}" for key, value in sorted(configs.items()))
    return "|".join([" ".join(brokers), " ".join(text for _, text in sorted(partitions.items())), settings])


def partition_told(place: str, p: Partition) -> str:
    epochs = f"{p.leader}:{p.leader_epoch}:{p.partition_epoch}"
    moves = f"{joined(p.adding_replicas)}:{joined(p.removing_replicas)}"
    return f"{place}:{epochs}:{joined(p.isr)}:{joined(p.replicas)}:{moves}:{int(p.leader_recovery_state)}"


def with_a_leader(seed: int) -> list[Draw]:
    """Draw events, among them the start of a gateway that leads the quorum."""
    lead: Draw = ("gateway", 0, 0, 0)
    drawn = seeded_draws(seed, EVENTS)
    return [*drawn[: seed * 5], lead, *drawn[seed * 5 :]]


@pytest.mark.parametrize("batch_bytes_max", [entries.BATCH_BYTES_MAX, 400], ids=["one batch", "transactions"])
def test_a_broker_knows_what_the_rules_know_after_every_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes_max: int
) -> None:
    monkeypatch.setattr(entries, "BATCH_BYTES_MAX", batch_bytes_max)
    published = 0
    for seed in range(4):
        directory = tmp_path / f"{seed}"
        known = followed(directory, with_a_leader(seed), snapshot_interval_bytes=2**30)
        for line in run_java(SOURCE, sorted(directory.glob("*.log"))).splitlines():
            end_offset, _, seen = line.partition("|")
            assert seen == known[int(end_offset)]
            published += 1
    assert published > 4 * EVENTS / 10


def followed(directory: Path, drawn: list[Draw], snapshot_interval_bytes: int) -> dict[int, str]:
    """Write the metadata log of a world; return the rules' state at each of its ends."""
    decided = DecidedBus(directory.with_suffix(".db"), POLICY)
    steps = [(raw, outcome.state) for _, raw, outcome in walk(drawn, POLICY)]
    decided.take([raw for raw, _ in steps])
    storage = opened(directory, decided.bus, snapshot_interval_bytes=snapshot_interval_bytes)
    known = {}
    for seq, (_, state) in enumerate(steps, start=1):
        follow(storage, decided.bus, through=seq)
        known[storage.end_offset] = expected_image(state)
    storage.close()
    decided.close()
    return known


def test_a_snapshot_gives_the_same_image_and_the_log_continues_from_it(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    known = followed(directory, with_a_leader(5), snapshot_interval_bytes=2_000)
    held = snapshots.held_in(directory)
    assert held
    files = [snapshots.path_of(directory, held[0]), *sorted(directory.glob("*.log"))]
    files = [path for path in files if path.suffix != ".log" or int(path.stem) >= held[0].end_offset]
    first, *others = run_java(SOURCE, files).splitlines()
    assert first.partition("|")[2] == known[held[0].end_offset]
    assert len(others) > 10
    for line in others:
        end_offset, _, seen = line.partition("|")
        assert seen == known[int(end_offset)]


def test_kafkas_own_tool_reads_every_file(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    followed(directory, with_a_leader(6), snapshot_interval_bytes=2_000)
    files = [*sorted(directory.glob("*.log")), *sorted(directory.glob("*.checkpoint"))]
    assert {path.suffix for path in files} == {".log", ".checkpoint"}
    listed = ",".join(map(str, files))
    lines = run_java("kafka.tools.DumpLogSegments", ("--cluster-metadata-decoder", "--files", listed)).splitlines()
    ours = Counter(record.name for path in files for record in entries.records_in(path.read_bytes()))
    kafkas = Counter(name for line in lines for name in re.findall(r'payload: {"type":"(\w+)"', line))
    assert kafkas == {re.sub(r"\B([A-Z])", r"_\1", name).upper(): count for name, count in ours.items()}
    assert kafkas["REGISTER_BROKER_RECORD"] > 4
    for control in ("SnapshotHeader", "SnapshotFooter"):
        assert sum(control in line for line in lines) == len(list(directory.glob("*.checkpoint")))
