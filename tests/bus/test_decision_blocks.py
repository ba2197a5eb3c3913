"""Blocks of decisions in the embedded bus: readers get the decisions as they were written, one by one."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bus import embedded_history
from bus.decided_runs import runs_in
from bus.embedded import EmbeddedBus
from bus.interface import AFTER_ALL_OF, DamagedError, Decided, DivergedError, TrimmedError
from isrflow.decision_blocks import (
    BLOCK_DECISIONS_MIN,
    CONTENT_BYTES_MAX,
    is_block,
    rows_of,
)
from isrflow.decision_columns import ROWS_MAX
from isrflow.decision_rows import opened
from isrflow.sqlite.bus_file import Access
from isrflow.sqlite.log import SqliteLog
from state.numbered_run import NumberedRun
from tests.support.bus_rows import execute
from tests.support.column_runs import in_columns
from tests.support.trimming import trim

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
ALL = 10**6
# The decisions on event 2 are two blocks and some rows.
MANY = 2 * ROWS_MAX + 50


def said(seq: int, idx: int, kind: str = "leader_and_isr") -> Decided:
    return Decided(seq, idx, b'{"kind":"%b","seq":%d,"index":%d}' % (kind.encode(), seq, idx))


DECISIONS = [said(1, 0), *(said(2, idx) for idx in range(MANY)), said(3, 0), said(3, 1)]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.publish([EVENT] * 3)
    bus.commit(0, 3, in_columns(DECISIONS), [])
    bus.passed(3)
    yield bus
    bus.close()


def rows(bus: EmbeddedBus) -> list[Decided]:
    return [Decided(*row) for row in execute(bus.path, "SELECT seq, idx, body FROM decisions ORDER BY seq, idx")]


def test_many_decisions_on_one_event_are_few_rows_and_little_text(bus: EmbeddedBus) -> None:
    written = rows(bus)
    assert [(row[:2]) for row in written if is_block(row.body)] == [(2, 0), (2, ROWS_MAX)]
    assert len(written) == 1 + 2 + 50 + 2
    assert sum(len(row.body) for row in written) < sum(len(one.body) for one in DECISIONS) / 4


def test_a_reader_gets_every_decision_from_any_place_and_with_any_limit(bus: EmbeddedBus) -> None:
    assert bus.decisions((0, -1), ALL) == DECISIONS
    for after in (0, 1, 2, ROWS_MAX - 1, ROWS_MAX, ROWS_MAX + 1, MANY - 60, MANY):
        place = DECISIONS[after][:2]
        for limit in (1, 3, ROWS_MAX, ALL):
            assert bus.decisions(place, limit) == DECISIONS[after + 1 :][:limit]
    assert bus.decisions((2, AFTER_ALL_OF), ALL) == DECISIONS[-2:]
    assert bus.decisions((2, 5), 0) == []


def test_a_reader_that_is_bounded_in_bytes_gets_all_decisions_in_turn(bus: EmbeddedBus) -> None:
    place, found = (0, -1), list[Decided]()
    while some := bus.decisions(place, ALL, 20_000):
        assert sum(len(one.body) for one in some) <= 20_000
        found += some
        place = found[-1][:2]
    assert found == DECISIONS
    assert bus.decisions((2, 5), ALL, 1) == [said(2, 6)]


def test_a_client_begins_behind_the_newest_decision_of_a_block(bus: EmbeddedBus) -> None:
    bus.publish([EVENT])
    bus.commit(0, 4, in_columns([said(4, idx) for idx in range(BLOCK_DECISIONS_MIN)]), [])
    log = SqliteLog(str(bus.path))
    assert log.newest_decision() == (4, BLOCK_DECISIONS_MIN - 1)
    log.close()


def test_a_repeated_batch_is_compared_decision_by_decision(bus: EmbeddedBus) -> None:
    bus.commit(0, 3, in_columns(DECISIONS), [])
    for place in (1, 700, MANY - 1):
        other = list(DECISIONS)
        other[place] = other[place]._replace(body=b'{"kind":"other"}')
        with pytest.raises(DivergedError, match=rf"\(2, {place - 1}\)"):
            bus.commit(0, 3, other, [])
    with pytest.raises(DivergedError, match=rf"\(2, {MANY}\)"):
        bus.commit(0, 3, [*DECISIONS[: MANY + 1], said(2, MANY)], [])


def test_retention_removes_whole_blocks_and_notes_their_last_decision(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_history, "SLICE_ROWS", 10)
    assert trim(bus, 0) == 1 + ROWS_MAX
    left = DECISIONS[1 + ROWS_MAX :]
    assert bus.decisions((2, ROWS_MAX - 1), ALL) == left, "a reader that is this far continues"
    assert bus.decisions((0, -1), ALL) == left
    with pytest.raises(TrimmedError):
        bus.decisions((2, ROWS_MAX - 2), ALL)
    while trim(bus, 0):
        pass
    assert rows(bus) == []


def test_thinning_keeps_the_other_decisions_of_a_block(bus: EmbeddedBus) -> None:
    bus.publish([EVENT])
    mixed = [
        *(said(4, idx) for idx in range(BLOCK_DECISIONS_MIN)),
        *(said(4, idx, "high_watermark") for idx in range(BLOCK_DECISIONS_MIN, 2 * BLOCK_DECISIONS_MIN)),
    ]
    bus.commit(0, 4, in_columns(mixed), [])
    assert is_block(rows(bus)[-1].body)
    bus.passed(4)
    while bus.thin(4):
        pass
    left = [*DECISIONS, *mixed[:BLOCK_DECISIONS_MIN]]
    assert bus.decisions((0, -1), ALL, passing_over=True) == left
    assert [one for row in rows(bus) for one in opened(row, "bus").decisions()] == left


def test_a_file_has_decisions_in_rows_and_in_blocks(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "new.db")
    bus.publish([EVENT] * 2)
    bus.commit(0, 1, in_columns([said(1, idx) for idx in range(BLOCK_DECISIONS_MIN - 1)]), [])
    bus.commit(0, 2, in_columns([said(2, idx) for idx in range(BLOCK_DECISIONS_MIN)]), [])
    bus.close()
    for access in Access:
        again = EmbeddedBus(bus.path, access)
        assert len(again.decisions((0, -1), ALL)) == 2 * BLOCK_DECISIONS_MIN - 1
        again.close()


@pytest.mark.parametrize("keeps_checksum", [True, False])
@pytest.mark.parametrize(("left_out", "added"), [(9, b"otherwise"), (0, b"more"), (1, b"")])
def test_a_damaged_block_is_named(bus: EmbeddedBus, left_out: int, added: bytes, *, keeps_checksum: bool) -> None:
    whole = rows(bus)[1].body
    broken = whole[: len(whole) - left_out] + added
    execute(bus.path, "UPDATE decisions SET body = ? WHERE seq = 2 AND idx = 0", broken)
    if not keeps_checksum:
        execute(bus.path, "UPDATE decisions SET crc = ? WHERE seq = 2 AND idx = 0", zlib.crc32(broken))
    with pytest.raises(DamagedError, match=r"\(2, 0\)"):
        bus.decisions((2, 3), ALL)


places = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(1, 3 * BLOCK_DECISIONS_MIN)), min_size=1, max_size=5
)


@settings(deadline=None, max_examples=30)
@given(places, st.sampled_from([b"short", b"with\na line", b"x" * (CONTENT_BYTES_MAX // 100), b""]))
def test_rows_hold_what_they_were_made_of(runs: list[tuple[int, int, int]], text: bytes) -> None:
    decisions = [Decided(seq, first + nth, text) for seq, first, count in runs for nth in range(count)]
    # Only texts of one line come in columns.
    made = runs_in if b"\n" in text else lambda some: in_columns(some).runs
    each = [made([Decided(seq, first + nth, text) for nth in range(count)]) for seq, first, count in runs]
    written = list(rows_of(run for some in each for run in some))
    assert [one for row in written for one in opened(row, "bus").decisions()] == decisions
    for row in written:
        assert not is_block(row.body) or len(opened(row, "bus").decisions()) >= BLOCK_DECISIONS_MIN


@pytest.mark.parametrize("length", [10, CONTENT_BYTES_MAX // 100, 2 * CONTENT_BYTES_MAX])
def test_a_run_of_any_size_is_read_back(length: int) -> None:
    bodies = [b"%d" % number * length for number in range(3 if length > CONTENT_BYTES_MAX else 1_000)]
    [run] = in_columns([Decided(7, idx, body) for idx, body in enumerate(bodies, 5)]).runs
    before, after = NumberedRun(7, 4, b"before"), NumberedRun(7, 5 + len(bodies), b"after")
    written = list(rows_of([before, run, after]))
    texts = [b"before", *bodies, b"after"]
    assert [one for row in written for one in opened(row, "bus").decisions()] == [
        Decided(7, 4 + nth, body) for nth, body in enumerate(texts)
    ]


def test_a_shadows_signs_of_life_are_thinned_and_what_it_observed_stays(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "shadow.db")

    def observed(cause: str, **results: object) -> bytes:
        return msgspec.json.encode({"kind": "observed", "time_ms": 1, "cause": cause, "results": results})

    looks_alike = observed("settings_changed", settings=[{"value": '"cause":"no_change"'}])
    bus.publish([observed("no_change"), observed("other"), looks_alike, observed("no_change")])
    bus.commit(0, 4, [], [])
    bus.passed(4)
    while bus.thin(4):
        pass
    assert execute(bus.path, "SELECT seq FROM events ORDER BY seq") == [(2,), (3,)]
    bus.close()
