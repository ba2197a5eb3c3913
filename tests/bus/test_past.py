"""What every bus gives back of its past: pages bounded in count and bytes, and the seq of a time.

The buses on Kafka are on the node of ``kafka_servers``.
"""

from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Bus, Decided, FencedError, Image, Page, TrimmedError
from bus.pieces import PIECE_BYTES_MAX
from history.explanation import explain
from state.decisions import encode, leader_and_isr_of
from state.partition import Partition, PartitionState
from state.reason import Reason
from tests.support.commits import readable
from tests.support.waiting import wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
ALL = 2**62


def claimed(bus: Bus) -> int:
    return bus.claim("job", {}, 1).controller_epoch


def passed(bus: Bus, through: int) -> None:
    """Note that the checkpoint has passed a seq, where that is noted on the bus."""
    if isinstance(bus, EmbeddedBus):
        bus.passed(through)


def test_decisions_are_bounded_in_bytes_and_never_empty(bus: Bus) -> None:
    decided = [Decided(seq, 0, b"x" * 100) for seq in range(1, 6)]
    bus.commit(claimed(bus), 5, decided, [])
    readable(5, bus)
    assert bus.decisions((0, -1), 10, 300) == decided[:3]
    assert bus.decisions((3, 0), 10, 199) == decided[3:4]
    assert bus.decisions((4, 0), 10, 1) == decided[4:]
    assert bus.decisions((5, 0), 10, 1) == []


def test_recorded_events_are_bounded_in_count_and_bytes(bus: Bus) -> None:
    last = bus.publish([EVENT] * 5)
    entries = bus.read(0, last)
    assert bus.recorded(0, last, 3, ALL) == entries[:3]
    assert bus.recorded(entries[2].seq, last, 10, 2 * len(EVENT) - 1) == entries[3:4]
    assert bus.recorded(entries[3].seq, last, 10, 1) == entries[4:]
    assert bus.recorded(0, entries[1].seq, 10, ALL) == entries[:2]
    assert bus.recorded(last, ALL, 10, ALL) == []
    assert bus.kept_after() == 0


def test_a_time_is_turned_into_the_newest_seq_at_that_time(bus: Bus) -> None:
    last = bus.publish([EVENT] * 3)
    entered_ms = bus.read(0, last)[-1].entered_ms
    assert entered_ms is not None
    assert bus.seq_at(entered_ms + 60_000) == bus.seq_at(entered_ms) == last
    assert bus.seq_at(entered_ms - 60_000) == 0


def test_a_snapshot_keeps_the_state_as_it_was(bus: Bus, other: Bus) -> None:
    epoch = claimed(bus)
    assert not bus.keep_snapshot(epoch), "there is no state yet"
    states: dict[int, list[Page]] = {}
    pages = [Page(0, -1, b"cluster"), Page(0, 3, b"x" * (PIECE_BYTES_MAX + 5)), Page(1, 0, b"page")]
    for body in (b"one", b"two", b"three"):
        pages[2] = Page(1, 0, body)
        seq = bus.publish([EVENT])
        bus.commit(epoch, seq, [], pages if body == b"one" else pages[2:])
        readable(seq, bus)
        assert bus.keep_snapshot(epoch)
        assert not bus.keep_snapshot(epoch)
        states[seq] = list(pages)
    assert [snapshot.seq for snapshot in other.snapshots()] == list(states)
    assert {seq: other.snapshot(seq) for seq in states} == {seq: Image(seq, held) for seq, held in states.items()}
    middle = sorted(states)[1]
    assert bus.seq_at(bus.snapshots()[1].time_ms) >= middle
    passed(bus, middle)
    while bus.thin(middle):
        pass
    assert [snapshot.seq for snapshot in other.snapshots()] == sorted(states)[1:]
    with pytest.raises(TrimmedError, match="no snapshot at seq"):
        other.snapshot(min(states))
    assert other.snapshot(middle) == Image(middle, states[middle])


def test_only_the_newest_job_keeps_a_snapshot(bus: Bus, other: Bus) -> None:
    epoch = claimed(bus)
    bus.commit(epoch, 1, [], [Page(0, 0, b"page")])
    readable(1, bus)
    claimed(other)
    wait_until(lambda: bus.claimed_epoch() == epoch + 1, "the other claim to be readable")
    with pytest.raises(FencedError):
        bus.keep_snapshot(epoch)
    assert other.snapshots() == []


def test_forgotten_events_are_gone_with_their_decisions(bus: Bus) -> None:
    epoch = claimed(bus)
    for _ in range(2):
        last = bus.publish([EVENT] * 3)
        entries = bus.recorded(0, last, 100, ALL)
        bus.commit(epoch, last, [Decided(e.seq, 0, b"said") for e in entries if e.seq > bus.decided_seq()], [])
        readable(last, bus)
    passed(bus, last)
    third = entries[2].seq
    while bus.forget(third):
        pass
    wait_until(lambda: bus.kept_after() == third, "the events to be gone")
    assert [entry.seq for entry in bus.recorded(0, last, 100, ALL)] == [entry.seq for entry in entries[3:]]
    assert [one.seq for one in bus.decisions((0, -1), 100)] == [entry.seq for entry in entries[3:]]


def test_a_partition_is_explained_from_its_decisions_alone(
    bus: Bus, other: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISRFLOW_CACHE", str(tmp_path / "cache"))
    epoch = claimed(bus)
    seqs = [entry.seq for entry in bus.read(0, bus.publish([EVENT] * 4))][-4:]
    decided = [leader(seq, leads) for seq, leads in zip(seqs, (1, 1, 2, 1), strict=True)]
    bus.commit(epoch, seqs[2], decided[:3], [])
    readable(seqs[2], other)
    assert other.seqs_about("t", 0, seqs[3], 10) == seqs[2::-1]
    bus.commit(epoch, seqs[3], decided[3:], [])
    readable(seqs[3], other)
    assert other.seqs_about("t", 0, ALL, 2) == [seqs[3], seqs[2]]
    assert other.seqs_about("t", 1, ALL, 2) == []
    explanation = explain(other, "t", 0, seqs[2], 1)
    assert explanation is not None
    assert explanation.steps[0].sentences[:2] == ["An admin asked to delete the topic t.", "t-0: leader 1 -> 2."]


def leader(seq: int, leads: int) -> Decided:
    partition = Partition(0, PartitionState.OnlinePartition, (1, 2), (), (1, 2), leads, 0, 0)
    common = {"seq": seq, "controller_epoch": 1, "time_ms": 1, "reason": Reason.PREFERRED_ELECTION, "to": ()}
    return Decided(seq, 0, encode(leader_and_isr_of("t", "id", partition, **common)))
