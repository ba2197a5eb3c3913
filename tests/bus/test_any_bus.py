"""What every bus promises: one order for all publishers, each decision written once, one job that writes.

The buses on Kafka are on the node of ``kafka_servers``.
"""

import threading
from pathlib import Path

import msgspec
import pytest

from bus.clock import now_ms
from bus.interface import (
    MAX_EVENT_BYTES,
    Bus,
    BusError,
    Decided,
    EngineOnlyError,
    FencedError,
    Page,
)
from bus.kafka import sending
from bus.open_bus import open_bus
from isrflow.kafka.limits import MESSAGE_BYTES_MAX
from state.level import NEWEST_LEVEL
from tests.support.commits import readable
from tests.support.waiting import TIMEOUT_S, wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
OFFSET = b'{"kind":"log_end_offset","time_ms":1,"topic":"t","partition":0,"broker":1}'
ALL = 2**62


def claimed(bus: Bus) -> int:
    return bus.claim("job", {}, 1).controller_epoch


def test_seq_rises_and_events_stay_as_they_are(bus: Bus, other: Bus) -> None:
    assert bus.last_seq() == 0
    last = bus.publish([EVENT, b"\xff not text", b""])
    assert last == bus.last_seq() == bus.publish([])
    entries = other.read(0, last)
    assert [entry.raw for entry in entries] == [EVENT, b"\xff not text", b""]
    assert [entry.seq for entry in entries] == [last - 2, last - 1, last]
    assert other.read(entries[0].seq, entries[1].seq) == entries[1:2]
    assert other.read(last, last + 5) == []


def test_events_published_together_stay_together(bus: Bus, other: Bus) -> None:
    def publish(name: bytes, on: Bus) -> None:
        for number in range(50):
            on.publish([b"%s-%d-%d" % (name, number, part) for part in range(20)])

    threads = [threading.Thread(target=publish, args=args) for args in ((b"a", bus), (b"b", bus), (b"c", other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    raws = [entry.raw for entry in bus.read(0, bus.last_seq())]
    assert len(raws) == 3 * 50 * 20
    together = [raws[start : start + 20] for start in range(0, len(raws), 20)]
    assert all(len({raw.rsplit(b"-", 1)[0] for raw in part}) == 1 for part in together)
    for name in (b"a", b"b", b"c"):
        mine = [raw for raw in raws if raw.startswith(name)]
        assert mine == [b"%s-%d-%d" % (name, number, part) for number in range(50) for part in range(20)]


def test_a_publish_with_an_oversized_event_is_refused_as_a_whole(bus: Bus) -> None:
    with pytest.raises(BusError, match="limit"):
        bus.publish([EVENT, b"x" * (MAX_EVENT_BYTES + 1)])
    assert bus.last_seq() == 0
    largest = b"x" * MAX_EVENT_BYTES
    assert [entry.raw for entry in bus.read(0, bus.publish([EVENT, largest]))] == [EVENT, largest]


def test_a_claim_takes_an_epoch_and_publishes_an_event(bus: Bus, other: Bus) -> None:
    bus.publish([EVENT])
    first = bus.claim("a", {"min.insync.replicas": "2"}, 5)
    second = other.claim("b", {}, 6)
    assert (first.controller_epoch, second.controller_epoch) == (1, 2)
    wait_until(lambda: bus.claimed_epoch() == other.claimed_epoch() == 2, "the claim to be readable")
    wait_until(lambda: len(bus.read(0, ALL)) == 3, "the event to be readable")
    entries = {entry.seq: msgspec.json.decode(entry.raw) for entry in bus.read(0, ALL)}
    assert entries[first.seq] == {
        "kind": "controller_started",
        "time_ms": 5,
        "controller_id": "a",
        "controller_epoch": 1,
        "settings": {"min.insync.replicas": "2"},
        "decided_seq": 0,
        "level": NEWEST_LEVEL,
    }
    assert list(entries)[1:] == [first.seq, second.seq]


def test_the_bus_knows_its_claims_and_entry_times(bus: Bus, other: Bus) -> None:
    forged = b'{"kind":"controller_started","time_ms":1,"controller_id":"x","controller_epoch":2147483647}'
    before_ms = now_ms() - 1_000
    first, between = bus.claim("a", {}, 5), bus.publish_own([forged, EVENT])
    second = other.claim("b", {}, 6)
    wait_until(lambda: len(bus.read(0, ALL)) == 4, "the events to be readable")
    entries = bus.read(0, ALL)
    claims = {entry.seq: entry.is_claim for entry in entries}
    assert claims == {first.seq: True, between - 1: False, between: False, second.seq: True}
    assert all(before_ms < (entry.entered_ms or 0) < before_ms + 60_000 for entry in entries)
    assert second.controller_epoch == 2, "nobody else's epoch counts"


def test_the_engines_own_events_are_refused_from_others(bus: Bus) -> None:
    with pytest.raises(EngineOnlyError, match="event 2 of 2 is a tick, which only the engine makes"):
        bus.publish([EVENT, b'{"kind":"tick","time_ms":1}'])
    assert bus.last_seq() == 0


def test_claims_at_the_same_moment_get_different_epochs(bus: Bus, other: Bus) -> None:
    claims: list[tuple[int, int]] = []
    threads = [
        threading.Thread(target=lambda on=on, n=n: claims.append(on.claim(str(n), {}, n)))
        for n, on in enumerate((bus, other, bus, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(claims) == 4
    wait_until(lambda: bus.claimed_epoch() == max(claims)[0], "the claim to be readable")
    wait_until(lambda: len(bus.read(0, ALL)) >= 4, "the events to be readable")
    started = [(msgspec.json.decode(entry.raw)["controller_epoch"], entry.seq) for entry in bus.read(0, ALL)]
    assert len({epoch for epoch, _ in started}) == len(started)
    assert {claim[:2] for claim in claims} <= set(started)


def test_a_batch_is_written_once(bus: Bus, other: Bus) -> None:
    epoch, last = claimed(bus), bus.publish([EVENT, EVENT])
    decisions = [Decided(last - 1, 0, b"one"), Decided(last - 1, 1, b"two")]
    for _ in range(2):
        bus.commit(epoch, last, decisions, [Page(0, -1, b"cluster")])
    readable(last, bus, other)
    for reader in (bus, other):
        assert reader.decisions((0, -1), 10) == decisions
        assert reader.decisions((last - 1, 0), 10) == decisions[1:]
        assert reader.decisions((-1, ALL), 1) == decisions[:1]
        assert reader.image() == (last, [Page(0, -1, b"cluster")])


def test_a_batch_repeated_with_other_bounds_adds_only_what_is_new(bus: Bus) -> None:
    epoch = claimed(bus)
    bus.commit(epoch, 2, [Decided(1, 0, b"one")], [Page(0, 3, b"old"), Page(1, 3, b"other")])
    bus.commit(epoch, 4, [Decided(1, 0, b"one"), Decided(4, 0, b"four")], [Page(0, 3, b"new")])
    readable(4, bus)
    assert [decided.seq for decided in bus.decisions((0, -1), 10)] == [1, 4]
    assert bus.image() == (4, [Page(0, 3, b"new"), Page(1, 3, b"other")])


def test_a_page_may_have_any_length(bus: Bus, other: Bus) -> None:
    epoch, larger = claimed(bus), MESSAGE_BYTES_MAX + 1
    large = [Page(0, -1, b"c" * larger), Page(3, 2**31 - 1, b"t" * larger), Page(3, 7, b"small")]
    bus.commit(epoch, 1, [], large)
    readable(1, bus, other)
    assert other.image() == (1, large[:1] + large[:0:-1])
    bus.commit(epoch, 2, [], [Page(0, -1, b"fewer")])
    readable(2, bus, other)
    assert other.image().pages[0] == Page(0, -1, b"fewer")


def test_a_batch_may_be_larger_than_the_send_buffer(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sending.BULK, "queue.buffering.max.kbytes", 16 * 1024)
    epoch, body = claimed(bus), b"d" * (MESSAGE_BYTES_MAX // 2)
    many = [Decided(1, idx, body) for idx in range(4)]
    bus.commit(epoch, 1, many, [])
    readable(1, bus)
    assert bus.decisions((0, -1), 10, 2**30) == many


def test_a_superseded_job_writes_nothing(bus: Bus, other: Bus) -> None:
    first = claimed(bus)
    second = claimed(other)
    with pytest.raises(FencedError, match="controller epoch 2"):
        bus.commit(first, 1, [Decided(1, 0, b"late")], [Page(0, 0, b"late")])
    assert bus.decisions((0, -1), 10) == []
    assert bus.image() == (0, [])
    other.commit(second, 1, [Decided(1, 0, b"in time")], [])
    readable(1, bus, other)
    assert bus.decisions((0, -1), 10) == [Decided(1, 0, b"in time")]


def test_a_follower_gets_each_decision_once_wherever_it_starts(bus: Bus, other: Bus) -> None:
    epoch = claimed(bus)
    written = [Decided(seq, idx, b"%d-%d" % (seq, idx)) for seq in range(1, 400, 3) for idx in range(seq % 4)]
    for first in range(1, 400, 30):
        bus.commit(epoch, first + 29, [decided for decided in written if first <= decided.seq < first + 30], [])
    readable(420, bus, other)
    log = other.decisions((0, -1), ALL)
    assert log == written
    places = [(decided.seq, decided.idx) for decided in log]
    for after in (*places[::29], (2, 0), (200, ALL), (5_000, 0)):
        assert bus.decisions(after, 3) == [d for d in log if (d.seq, d.idx) > after][:3]
    followed, after = [], (0, -1)
    while some := bus.decisions(after, 41):
        followed += some
        after = (some[-1].seq, some[-1].idx)
    assert followed == log


def test_a_follower_is_woken_by_a_commit(bus: Bus, other: Bus) -> None:
    epoch = claimed(bus)
    bus.commit(epoch, 1, [Decided(1, 0, b"one")], [])
    assert other.changed()
    readable(1, other)
    assert other.decisions((0, -1), 10) == [Decided(1, 0, b"one")]
    bus.commit(epoch, 2, [Decided(2, 0, b"two")], [])
    wait_until(other.changed, "word of the second")
    readable(2, other)
    assert other.decisions((1, 0), 10) == [Decided(2, 0, b"two")]


def test_reports_of_log_ends_after_a_seq_are_noticed(bus: Bus) -> None:
    before = bus.publish([OFFSET, EVENT])
    assert not bus.log_ends_came(before)
    bus.publish([EVENT])
    assert not bus.log_ends_came(before)
    between = bus.publish([OFFSET])
    last = bus.publish([OFFSET])
    wait_until(lambda: bus.log_ends_came(between), "the second report")
    # The answer depends on the seq alone, so asking twice gives the same answer twice.
    assert bus.log_ends_came(before)
    assert bus.log_ends_came(before)
    assert not bus.log_ends_came(last)


def test_a_bus_has_an_identity_from_its_first_claim_on(bus: Bus, other: Bus, tmp_path: Path) -> None:
    assert bus.bus_id() == 0
    epoch = claimed(bus)
    drawn = bus.bus_id()
    assert drawn > 0
    bus.commit(epoch, 1, [], [])
    claimed(other)
    wait_until(lambda: bus.claimed_epoch() == 2, "the claim to be readable")
    assert bus.bus_id() == other.bus_id() == drawn
    second = open_bus(f"sqlite:{tmp_path / 'second.db'}")
    claimed(second)
    assert second.bus_id() != drawn
    second.close()


def test_the_seqs_of_events_published_together_are_known(bus: Bus) -> None:
    events = [EVENT, OFFSET, EVENT, OFFSET, EVENT]
    last = bus.publish(events)
    first = last - (len(events) - 1)
    wait_until(lambda: bus.last_seq() >= last, "the events to be readable")
    assert [(entry.seq, entry.raw) for entry in bus.read(0, last)] == list(enumerate(events, start=first))


def test_a_tick_between_two_batches_says_what_is_undecided(bus: Bus, other: Bus) -> None:
    epoch = claimed(bus)
    decided = bus.publish([EVENT])
    waiting = bus.publish([EVENT, EVENT])
    bus.commit(epoch, decided, [], [])
    readable(decided, bus, other)
    told = bus.tell_undecided(epoch, b'{"kind":"tick","time_ms":1,"controller_epoch":1,"decided_seq":%d}' % decided)
    assert told is not None
    assert told > waiting
    later = bus.publish([EVENT])
    readable(decided, bus, other)
    entries = {entry.seq: entry for entry in other.read(0, later)}
    found = {seq: entry.found_ms for seq, entry in entries.items() if entry.found_ms is not None}
    assert found == dict.fromkeys((waiting - 1, waiting), entries[told].entered_ms)
    # It is known as long as the tick is there, also after further commits.
    bus.commit(epoch, later, [], [])
    readable(later, bus, other)
    assert other.read(0, later) == list(entries.values())
    claimed(other)
    wait_until(lambda: bus.claimed_epoch() > epoch, "the claim to be readable")
    with pytest.raises(FencedError):
        bus.tell_undecided(epoch, b'{"kind":"tick","time_ms":2,"controller_epoch":1,"decided_seq":%d}' % later)
    assert [b'"tick"' in entry.raw for entry in other.read(later, other.last_seq())] == [False]
