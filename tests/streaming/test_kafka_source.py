"""The order that a micro-batch from Kafka gets: control events by offset, offsets before the last tick."""

import random
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bus.kafka.claims import Claims
from bus.kafka.seqs import SLOTS, offset_after, placed, seq_of, unplaced
from state.found import Found
from streaming.sources import kafka
from streaming.sources.kafka import merged

TICK, BEAT, BAD = b'{"kind":"tick","time_ms":1}', b'{"kind":"broker_heartbeat"}', b"\xff"
FOUND = (Found(3 * SLOTS, 6 * SLOTS, 9_000),)
ASKED = b'{"kind":"create_topic","timeout_ms":5}'
STARTED = b'{"kind":"controller_started"}'
Row = tuple[str, int, int, bytes | None, int]
_COLUMNS = ("topic", "partition", "offset", "value", "timestamp")


def ordered(rows: list[Row], batches: int = 1) -> list[tuple[int, bytes]]:
    return [entry[:2] for entry in entries(rows, batches)]


def entries(rows: list[Row], batches: int = 1, *claims: int) -> list[tuple[int, bytes, int, bool]]:
    asked = list(
        merged(_arrow(rows, batches), events_topic="bus.events", claimed=lambda: Claims(frozenset(claims), FOUND))
    )
    return [entry for batch in asked for entry in zip(*(c.to_pylist() for c in batch.columns), strict=True)]


def _arrow(rows: list[Row], batches: int) -> Iterator[pa.RecordBatch]:
    for part in range(batches):
        some = rows[part::batches]
        yield pa.RecordBatch.from_pydict({name: [row[n] for row in some] for n, name in enumerate(_COLUMNS)})


def control(offset: int, raw: bytes | None) -> Row:
    return ("bus.events", 0, offset, raw, 1_000 + offset)


def report(partition: int, offset: int) -> Row:
    return ("bus.offsets", partition, offset, b"%d:%d" % (partition, offset), 2_000 + offset)


def test_each_entry_has_its_entry_time_and_a_claim_is_known_by_its_seq() -> None:
    rows = [control(4, STARTED), control(5, STARTED), control(6, BEAT), report(0, 9)]
    assert [entry[1:4] for entry in entries(rows, 1, 4)] == [
        (STARTED, 1_004, True),
        (STARTED, 1_005, False),
        (BEAT, 1_006, False),
        (b"0:9", 2_009, False),
    ]


def test_claims_are_looked_up_only_where_there_may_be_one() -> None:
    def claimed() -> Claims:
        raise AssertionError

    assert list(merged(_arrow([control(6, BEAT)], 1), events_topic="bus.events", claimed=claimed))


def test_a_claim_reports_what_it_found_undecided() -> None:
    rows = [control(1, ASKED), control(2, ASKED), control(3, ASKED), control(4, ASKED), control(5, ASKED)]
    assert [entry[4] for entry in entries(rows)] == [None, None, 9_000, 9_000, None]


def test_log_ends_are_placed_before_the_last_tick() -> None:
    rows = [control(4, TICK), control(5, BEAT), control(7, TICK), control(8, BAD), report(1, 2), report(0, 9)]
    assert ordered(rows) == [
        (5 * SLOTS, TICK),
        (6 * SLOTS, BEAT),
        (6 * SLOTS + 1, b"0:9"),
        (6 * SLOTS + 2, b"1:2"),
        (8 * SLOTS, TICK),
        (9 * SLOTS, BAD),
    ]


def test_without_a_tick_log_ends_are_placed_at_the_end() -> None:
    assert ordered([report(0, 1), control(3, BEAT), control(2, None)]) == [
        (3 * SLOTS, b""),
        (4 * SLOTS, BEAT),
        (4 * SLOTS + 1, b"0:1"),
    ]


def test_an_unreadable_tick_is_no_tick() -> None:
    deep = b'{"kind":"tick","time_ms":1,"x":%s%s}' % (b"[" * 120, b"]" * 120)
    rows = [control(1, TICK), control(2, deep), control(3, b'{"kind":"tick","time_ms":"1"}'), report(0, 1)]
    assert [raw for _, raw in ordered(rows)][:2] == [b"0:1", TICK]


@pytest.mark.parametrize("first", [[], [control(6, TICK)]])
def test_the_first_event_follows_the_batch_before(first: list[Row]) -> None:
    rows = ordered([*first, report(2, 1), report(2, 2)])
    assert [raw for _, raw in rows][:2] == [b"2:1", b"2:2"]
    assert [seq for seq, _ in rows] == sorted(seq for seq, _ in rows)
    assert [placed(seq, 6 * SLOTS + 3) for seq, _ in rows][:2] == [6 * SLOTS + 4, 6 * SLOTS + 5]
    assert [placed(seq, 0) for seq, _ in rows][2:] == [seq_of(6)] * len(first)


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [*(control(n, TICK if n % 7 == 0 else BEAT) for n in range(40)), *(report(n % 3, n) for n in range(60))]
    expected = ordered(rows)
    assert len({seq for seq, _ in expected}) == 100
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        assert ordered(rows, batches=1 + seed % 4) == expected


def test_many_bytes_are_cut_into_several_arrow_batches_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*(control(n, BEAT * (n % 5 + 1)) for n in range(40)), control(40, TICK), *(report(0, n) for n in range(60))]
    expected = ordered(rows)
    monkeypatch.setattr(kafka, "BYTES_PER_ARROW_BATCH", 3 * len(BEAT))
    batches = list(merged(_arrow(rows, 3), events_topic="bus.events", claimed=tuple))
    assert len(batches) > 20
    assert all(batch.column(1).nbytes < 200 or batch.num_rows == 1 for batch in batches)
    assert ordered(rows, 3) == expected


def test_rows_kept_in_a_file_come_out_like_rows_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        rows, claims = _drawn(random.Random(seed))
        expected = entries(rows, 1 + seed % 4, *claims)
        assert sorted(raw for _, raw, *_ in expected) == sorted(value or b"" for *_, value, _ in rows)
        with monkeypatch.context() as patched:
            patched.setattr(kafka, "RAW_BYTES_IN_MEMORY", 1 + seed % 50)
            assert entries(rows, 1 + seed % 4, *claims) == expected


def _drawn(rng: random.Random) -> tuple[list[Row], list[int]]:
    """Draw a micro-batch, and which of its offsets are claims."""
    values = (TICK, BEAT, BAD, None, STARTED, ASKED, BEAT * 40)
    rows = [control(offset, rng.choice(values)) for offset in rng.sample(range(60), rng.randrange(30))]
    rows += [report(rng.randrange(4), offset) for offset in rng.sample(range(90), rng.randrange(30))]
    rng.shuffle(rows)
    return rows, rng.sample(range(60), 10)


def test_a_batch_of_any_length_is_held_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "RAW_BYTES_IN_MEMORY", 1_000_000)
    monkeypatch.setattr(kafka, "BYTES_PER_ARROW_BATCH", 1_000_000)
    arriving = (batch for first in range(0, 400, 4) for batch in _arrow(_long(range(first, first + 4)), 1))
    tracemalloc.start()
    try:
        for batch in merged(arriving, events_topic="bus.events", claimed=Claims, spill_dir=tmp_path):
            assert 0 < batch.num_rows <= 10
            # The file has no name, so it is gone with its process.
            assert not list(tmp_path.iterdir())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def _long(offsets: Iterable[int]) -> list[Row]:
    return [control(offset, b"x" * 100_000) for offset in offsets]


def test_an_empty_batch_gives_no_rows() -> None:
    assert ordered([]) == []


def test_seq_and_offset_convert_both_ways() -> None:
    assert [offset_after(seq) for seq in (0, SLOTS - 1, SLOTS, SLOTS + 5, 3 * SLOTS)] == [0, 0, 1, 1, 3]
    assert [offset_after(seq_of(offset)) for offset in (0, 1, 99)] == [1, 2, 100]


def test_too_many_log_ends_are_reported() -> None:
    with pytest.raises(ValueError, match=r"max\.events\.per\.batch"):
        unplaced(SLOTS)
    assert placed(unplaced(SLOTS - 2), SLOTS + 1) == 2 * SLOTS - 1
    with pytest.raises(ValueError, match="without a tick"):
        placed(unplaced(SLOTS - 1), SLOTS + 1)
