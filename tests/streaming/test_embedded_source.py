"""The embedded bus as a Spark source."""

import threading
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Entry
from streaming.sources import embedded
from streaming.sources.embedded import BusReader
from tests.support.operators import events_in, keys_of_one_partition
from tests.support.waiting import TIMEOUT_S

FIRST = 10**12
KEYS = keys_of_one_partition(1).option
DEFERRABLE, DUE = b'{"kind":"broker_heartbeat","time_ms":1}', b'{"kind":"delete_topic","time_ms":1}'


def test_a_log_with_wide_gaps_between_seqs_is_read_by_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "ROWS_PER_ARROW_BATCH", 2)
    options = {"keys": KEYS, "max_events": "3", "max_bytes": "1000", "after": "0", "defer": "false"}
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.load([Entry(FIRST + nth * 2**20, b"%d" % nth) for nth in range(5)])
    reader = BusReader({"path": str(bus.path), "lock_timeout_s": "20", **options})
    assert taken_by(reader) == [[[b"0", b"1"], [b"2"]], [[b"3", b"4"]]]
    bus.close()


def test_batches_and_their_slices_are_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "BYTES_PER_ARROW_BATCH", 20)
    bus = EmbeddedBus(tmp_path / "bus.db")
    sizes = [10, 10, 10, 90, 1, 30, 5, 5]
    bus.publish([b"x" * size for size in sizes])
    reader = BusReader(
        {
            "path": str(bus.path),
            "lock_timeout_s": "20",
            "keys": KEYS,
            "max_events": "6",
            "max_bytes": "50",
            "after": "0",
            "defer": "false",
        }
    )
    found = [[[len(raw) for raw in part] for part in batch] for batch in taken_by(reader)]
    assert found == [[[10, 10], [10]], [[90]], [[1], [30], [5, 5]]]
    bus.close()


def bounded_reader(bus: EmbeddedBus, *, defer: bool) -> BusReader:
    bounds = {"keys": KEYS, "max_events": "10", "max_bytes": "1000", "after": "0"}
    return BusReader({"path": str(bus.path), "lock_timeout_s": "20", "defer": "true" if defer else "false", **bounds})


def test_a_question_waits_for_an_event_that_starts_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "NEWS_TIMEOUT_S", TIMEOUT_S)
    bus = EmbeddedBus(tmp_path / "bus.db")
    reader = bounded_reader(bus, defer=True)
    found: list[dict[str, int]] = []
    asking = threading.Thread(
        target=lambda: found.append(reader.latestOffset({"seq": 0}, reader.getDefaultReadLimit())), daemon=True
    )
    asking.start()
    bus.publish_own([DEFERRABLE])
    asking.join(0.1)
    assert asking.is_alive() and not found
    bus.publish([DUE])
    asking.join(TIMEOUT_S / 2)
    assert found == [{"seq": 2}]
    bus.close()


@pytest.mark.parametrize(("defer", "timeout_s"), [(True, 0.02), (False, TIMEOUT_S)])
def test_a_question_ends_without_news_and_at_once_where_nothing_is_deferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defer: bool, timeout_s: float
) -> None:
    monkeypatch.setattr(embedded, "NEWS_TIMEOUT_S", timeout_s)
    bus = EmbeddedBus(tmp_path / "bus.db")
    reader = bounded_reader(bus, defer=defer)
    polls: list[float] = []
    monkeypatch.setattr(embedded.time, "sleep", polls.append)
    assert reader.latestOffset({"seq": 0}, reader.getDefaultReadLimit()) == {"seq": 0}
    assert bool(polls) == defer
    bus.close()


def taken_by(reader: BusReader) -> list[list[list[bytes]]]:
    """Read everything: the texts of each slice of each batch."""
    start = {"seq": 0}
    taken = []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        (span,) = reader.partitions(start, end)
        taken.append([[one.raw or b"" for one in part] for part in events_in(reader.read(span))])
        start = end
    reader.stop()
    return taken
