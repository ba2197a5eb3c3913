"""What every bus gives back of its past: pages bounded in count and bytes, and the seq of a time."""

from bus.interface import Bus, Decided
from tests.support.waiting import wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
ALL = 2**62


def readable(through: int, bus: Bus) -> None:
    wait_until(lambda: bus.decided_seq() == through, f"seq {through} to be readable", 20)


def claimed(bus: Bus) -> int:
    return bus.claim("job", {}, 1).controller_epoch


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


def test_a_time_is_turned_into_the_last_seq_that_had_come(bus: Bus) -> None:
    last = bus.publish([EVENT] * 3)
    entered_ms = bus.read(0, last)[-1].entered_ms
    assert entered_ms is not None
    assert bus.seq_at(entered_ms + 60_000) == bus.seq_at(entered_ms) == last
    assert bus.seq_at(entered_ms - 60_000) == 0
