"""What claims found undecided is known for as long as the events are there, however many claims came later."""

import pytest

from bus.interface import Entry
from bus.kafka import mark
from bus.kafka.bus import KafkaBus

pytestmark = pytest.mark.kafka_bus

REQUEST = b'{"kind":"create_topic","time_ms":1,"topic":"t","partitions":1,"replication_factor":1,"timeout_ms":1}'
ALL = 2**62


def taken_over(bus: KafkaBus) -> None:
    """Have a new job decide all events, and then one that comes when it does."""
    claim = bus.claim("job", {}, 1)
    bus.commit(claim.controller_epoch, claim.seq, [], [])
    through = bus.publish([REQUEST])
    bus.commit(claim.controller_epoch, through, [], [])


def found(entries: list[Entry]) -> list[int | None]:
    return [entry.found_ms for entry in entries]


def test_an_event_stays_found_after_many_more_claims(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark, "CLAIMS_KEPT", 2)
    bus.publish([REQUEST])
    taken_over(bus)
    before = found(bus.recorded(0, bus.last_seq(), 10, ALL))
    assert [time_ms is not None for time_ms in before] == [True, False, False]
    waiting = bus.publish([REQUEST])
    for _ in range(5):
        taken_over(bus)
    fresh = KafkaBus(str(bus.address))
    whole = fresh.recorded(0, bus.last_seq(), 100, ALL)
    assert found(whole)[:3] == before
    # From the middle, and then two at a time from the beginning.
    later = fresh.recorded(waiting - 1, bus.last_seq(), 2, ALL)
    assert later == whole[3:5]
    assert later[0].found_ms == later[1].entered_ms
    after, pages = 0, list[Entry]()
    while page := fresh.recorded(after, bus.last_seq(), 2, ALL):
        pages += page
        after = page[-1].seq
    assert pages == whole
    assert sum(time_ms is not None for time_ms in found(whole)) == 2
    fresh.close()
