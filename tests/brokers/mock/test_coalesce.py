"""Decisions that a broker reads together are coalesced, with the same result as one by one."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from brokers.mock.control.lifecycle import Lifecycle
from brokers.mock.control.outbox import Outbox
from brokers.mock.decision_handler import DecisionHandler, superseded
from brokers.mock.log.directory import LogDirectory
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.partition import Partition
from brokers.mock.replicas.table import Replicas
from brokers.mock.settings import Identity, Settings
from bus.embedded import EmbeddedBus
from state.decisions import AnyDecision, HighWatermark, LeaderAndIsr, StopReplica
from state.event_text import decode
from state.events import AnyEvent, ReplicaReport, TopicPartition
from state.reason import Reason
from tests.brokers.mock.test_partition import BASE, decided_leader
from tests.support.batches import batch

BROKER = 1
STOP = StopReplica(
    seq=1,
    controller_epoch=1,
    time_ms=0,
    reason=Reason.REASSIGNMENT,
    topic="t",
    topic_id="id",
    partition=0,
    leader_epoch=2,
    delete=True,
    to=(1,),
)


def test_only_the_newest_decision_of_a_partition_remains() -> None:
    other = replace(decided_leader(3, 1), partition=1)
    decisions = [decided_leader(2, 0), other, decided_leader(3, 1), decided_leader(3, 1, 2), decided_leader(1, 2)]
    assert superseded(decisions, BROKER) == {0, 2, 3}


def test_nothing_is_coalesced_across_a_stop() -> None:
    for stop in (STOP, replace(STOP, delete=False), replace(STOP, topic_id="other"), replace(STOP, to=(2,))):
        assert superseded(
            [decided_leader(2, 0), decided_leader(2, 1), stop, decided_leader(2, 3), decided_leader(2, 4)], BROKER
        ) == {0, 3}


def test_nothing_is_coalesced_across_an_assignment_to_others() -> None:
    gone = decided_leader(2, 1, replicas=(2, 3), isr=(2, 3))
    assert superseded([decided_leader(2, 0), gone, decided_leader(2, 2)], BROKER) == frozenset()
    assert superseded([gone, gone], BROKER) == frozenset(), "they are not for this broker"


def test_a_recreated_topic_is_another_topic() -> None:
    renewed = replace(decided_leader(2, 0), topic_id="renewed")
    assert superseded(
        [decided_leader(2, 3), decided_leader(2, 4), renewed, replace(renewed, leader_epoch=1)], BROKER
    ) == {0, 2}


class _Change(NamedTuple):
    """The next change to decide; ``a`` and ``b`` choose its details."""

    what: str
    a: int
    b: int


_CHANGES = ("lead", "lead", "lead", "isr", "watermark", "watermark", "unclean", "removed", "stopped", "recreated")
changes = st.builds(_Change, st.sampled_from(_CHANGES), st.integers(0, 2), st.integers(0, 2))


def decided(turns_taken: list[_Change]) -> list[AnyDecision]:
    """Turn the changes into the decisions of an engine, with epochs that rise consistently."""
    now: LeaderAndIsr = BASE
    decisions: list[AnyDecision] = [now]
    high_watermark = 0
    for turn in turns_taken:
        if turn.what == "watermark":
            if now.leader == BROKER:
                continue  # an engine keeps it within this broker's log, which is unknown here
            high_watermark += turn.a
            where = {"topic": "t", "partition": 0, "leader_epoch": now.leader_epoch, "high_watermark": high_watermark}
            common = {"seq": 1, "controller_epoch": 1, "time_ms": 0, "reason": Reason.REPLICATED}
            decisions.append(HighWatermark(**common, **where))  # type: ignore[arg-type]
            continue
        if turn.what == "recreated":
            high_watermark = 0
            decisions.append(replace(STOP, topic_id=now.topic_id, leader_epoch=-2, delete=True))
            now = replace(BASE, topic_id=f"{now.topic_id}+", leader=1 + turn.a)
        elif turn.what in ("removed", "stopped"):
            away = replace(_next(now), replicas=(2, 3), isr=(2, 3), leader=2)
            stop = replace(STOP, topic_id=now.topic_id, leader_epoch=away.leader_epoch, delete=turn.what == "removed")
            decisions += [away, *([stop] if turn.a else [])]
            now = replace(_next(away), replicas=(1, 2, 3))
        elif turn.what == "isr":
            now = replace(now, partition_epoch=now.partition_epoch + 1, isr=((1, 2, 3), (1, 2), (2, 3))[turn.a])
        else:
            recovery = "RECOVERING" if turn.what == "unclean" else "RECOVERED"
            leader = (1, 2, 3, -1)[turn.a + (turn.b == 2)]
            now = replace(_next(now), leader=leader, leader_recovery_state=recovery)
        decisions.append(now)
    return decisions


def _next(now: LeaderAndIsr) -> LeaderAndIsr:
    return replace(now, leader_epoch=now.leader_epoch + 1, partition_epoch=now.partition_epoch + 1)


async def end_of(directory: Path, decisions: list[AnyDecision], at_once: int, records_after: int) -> Any:
    """Feed a broker the decisions in chunks while a leader's log grows; return the broker's final state."""
    directory.mkdir()
    bus = EmbeddedBus(directory / "bus.db")
    identity, settings = Identity(broker=BROKER, bus=bus.path, directory=directory / "1"), Settings()
    metadata = Metadata()
    logs, outbox = LogDirectory(identity.directory), Outbox(BROKER, bus, settings)
    replicas = Replicas(BROKER, logs, metadata, outbox, settings)
    handler = DecisionHandler(BROKER, metadata, Lifecycle(identity, outbox, settings, -1), outbox, replicas)
    handler.is_acting = True
    try:
        for start in range(0, len(decisions), records_after):
            between = decisions[start : start + records_after]
            for first in range(0, len(between), at_once):
                handler.apply(between[first : first + at_once])
            for partition in replicas.partitions.values():
                if partition.is_leader:
                    partition.append_as_leader(batch(b"x"))
        shown = {place: _shown(partition) for place, partition in replicas.partitions.items()}
        followed = replicas.fetchers.leader_epochs(TopicPartition("t", 0))
        reports = {
            (e.topic, e.partition): (e.outcome, e.leader_epoch)
            for e in await reported(outbox, bus)
            if isinstance(e, ReplicaReport)
        }
        folders = sorted(path.name for path in (directory / "1").glob("t-0*"))
        return shown, followed, reports, folders, metadata.partition(TopicPartition("t", 0))
    finally:
        await replicas.fetchers.stop()
        for partition in replicas.partitions.values():
            partition.log.close()
        outbox.close()
        bus.close()


async def reported(outbox: Outbox, bus: EmbeddedBus) -> list[AnyEvent]:
    """Publish what waits, and read everything that was published."""
    await outbox.flush()
    return [decode(entry.raw) for entry in bus.read(0, bus.last_seq())]


def _shown(partition: Partition) -> tuple[object, ...]:
    # An epoch without a record is dropped when logs are truncated to where they agree.
    end = partition.log.log_end_offset
    epochs = [e for e in partition.log.epochs.entries if partition.is_leader or e.start_offset < end]
    led = (partition.is_leader and partition.epoch_start_offset, sorted(partition.followers))
    held = (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr, partition.replicas)
    return partition.topic_id, partition.role, held, partition.recovering, partition.high_watermark, end, epochs, led


@settings(max_examples=30, deadline=None)
@given(st.lists(changes, max_size=12), st.integers(2, 20), st.integers(3, 8))
def test_coalesced_decisions_end_where_single_ones_do(taken: list[_Change], at_once: int, records_after: int) -> None:
    decisions = decided(taken)
    with tempfile.TemporaryDirectory() as directory:
        ends = [asyncio.run(end_of(Path(directory) / str(n), decisions, n, records_after)) for n in (1, at_once)]
    assert ends[0] == ends[1]
