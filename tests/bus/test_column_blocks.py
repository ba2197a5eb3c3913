"""Blocks of columns in the embedded bus: readers get the texts of the decisions, as the rules write them."""

import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bus.decided_runs import DecidedRuns
from bus.embedded import EmbeddedBus
from bus.interface import DamagedError, Decided, DivergedError
from isrflow import column_blocks
from isrflow.decision_blocks import is_block, rows_of
from isrflow.decision_columns import ROWS_MAX, DecisionColumns, packed, replica_blank
from isrflow.decision_rows import opened
from state.alike import Said, Saying, decisions_of
from state.canonical import number, numbered_runs
from state.level import FIRST_LEVEL, NEWEST_LEVEL
from state.numbered_run import NumberedRun
from state.part import part_of
from state.runs import parts_of
from tests.bus.test_decision_blocks import ALL, EVENT, rows
from tests.state.test_runs import TOPICS, led, one_of, refused, row, stopped, watermarks
from tests.support.bus_rows import execute

# More than a block holds.
PARTITIONS = 2_000


def said(seq: int, partitions: int = PARTITIONS) -> list[Said]:
    """Return what an event leads to: decisions of some forms, some by themselves, and others."""
    decisions: list[Said] = [refused(seq), row(led(), "alone", 3, seq)]
    for topic in TOPICS:
        for partition in range(partitions):
            decisions += [row(form, topic, partition, seq) for form in (led(), stopped())]
        decisions += [one_of(row(led(), topic, partition, seq)) for partition in range(partitions, partitions + 3)]
        decisions.append(watermarks(seq, topic, list(range(partitions))))
    return decisions


def runs_of(seq: int, partitions: int = PARTITIONS, level: int = NEWEST_LEVEL) -> DecidedRuns:
    return DecidedRuns(numbered_runs(parts_of(said(seq, partitions), level)))


def texts_of(seq: int, partitions: int = PARTITIONS) -> list[Decided]:
    """Encode each decision by itself."""
    return [Decided(*one) for one in number(map(part_of, decisions_of(said(seq, partitions))))]


DECISIONS = texts_of(1)


@pytest.fixture(params=range(FIRST_LEVEL, NEWEST_LEVEL + 1))
def bus(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.publish([EVENT])
    bus.commit(0, 1, runs_of(1, level=request.param), [])
    bus.passed(1)
    yield bus
    bus.close()


def test_columns_take_a_fraction_of_the_texts(bus: EmbeddedBus) -> None:
    written = rows(bus)
    assert len(written) <= 2 + len(DECISIONS) // (ROWS_MAX - 1_024)
    assert sum(len(one.body) for one in written) < sum(len(one.body) for one in DECISIONS) / 50
    assert any(is_block(one.body) for one in written)


def test_a_reader_gets_every_text_from_any_place_and_with_any_limit(bus: EmbeddedBus) -> None:
    assert bus.decisions((0, -1), ALL) == DECISIONS
    draw = random.Random(1)
    for after in [0, ROWS_MAX - 1, ROWS_MAX, *draw.sample(range(len(DECISIONS)), 20)]:
        for limit in (1, 100, ROWS_MAX + 1):
            assert bus.decisions(DECISIONS[after][:2], limit) == DECISIONS[after + 1 :][:limit]


def test_a_repeated_batch_is_compared_decision_by_decision(bus: EmbeddedBus) -> None:
    for level in (FIRST_LEVEL, NEWEST_LEVEL):
        bus.commit(0, 1, runs_of(1, level=level), [])
    bus.commit(0, 1, DECISIONS, [])
    other = list(DECISIONS)
    other[5_000] = other[5_000]._replace(body=b'{"kind":"other"}')
    with pytest.raises(DivergedError, match=r"\(1, 5000\)"):
        bus.commit(0, 1, other, [])


def test_thinning_removes_high_watermarks_from_a_block(bus: EmbeddedBus) -> None:
    while bus.thin(1):
        pass
    left = [one for one in DECISIONS if b'"high_watermark"' not in one.body]
    assert bus.decisions((0, -1), ALL, passing_over=True) == left


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=60), st.integers(1, 200), st.randoms(use_true_random=False))
def test_blocks_hold_columns_and_texts_in_any_mixture(kinds: list[int], most: int, draw: Any) -> None:
    runs: list[NumberedRun] = []
    idx = 0
    table = column_texts()
    for kind in kinds:
        count = draw.randint(2, most + 1)
        if kind == 0:
            runs.append(NumberedRun(4, idx, b'{"kind":"100%d"}'))
        else:
            texts = table if kind == 1 else list(reversed(table))
            runs.append(NumberedRun(4, idx, b"", columns_of(texts, count, draw)))
        idx += runs[-1].decisions
    written = list(rows_of(runs))
    expected = [Decided(4, run.idx + nth, body) for run in runs for nth, body in enumerate(run.each())]
    assert [one for row in written for one in opened(row, "bus").decisions()] == expected
    for place in range(0, len(expected), 7):
        block = max((row for row in written if row.idx <= place), key=lambda row: row.idx)
        held = opened(block, "bus")
        assert held.decisions(place, 3) == expected[place : min(place + 3, block.idx + held.decision_count)]


def column_texts() -> list[bytes]:
    alike = [form.on(Saying(4, 1, 5)) for form in (led(), stopped())]
    own = [b'{"a":%d,"t":%b%b,"p":%d%.0a,"last":%d}', b"100%%" + b"%.0a" * 6]
    return [*alike, *own, b'%d%%{"isr":' + replica_blank(2) + b"}%b%b%d%d%d"]


def columns_of(texts: list[bytes], count: int, draw: Any) -> DecisionColumns:
    places = [draw.randrange(len(texts)) for _ in range(count)]
    epochs = [draw.randint(-1, 2**31 - 1) for _ in range(count)]
    lasts = [draw.randint(-1, 2**63 - 1) for _ in range(count)]
    replicas = [[draw.randint(0, 2**31 - 1) for _ in range(count)] for _ in range(3)]
    first = draw.randint(1, count)
    topics = [("t%", first), ("u", count - first)] if first < count else [("t%", first)]
    names = [name for topic, _ in topics for name in (b'"%b"' % topic.encode(), b'"id"')]
    numbers = packed(list(range(count)), places, epochs, lasts, *replicas)
    return DecisionColumns(texts, names, [rows for _, rows in topics], numbers, len(replicas))


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 12, b"\1\0\0\0" * 3, b"\xff" * 200])
def test_damaged_columns_are_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"damaged|expected"):
        column_blocks.opened(content, 7)


@pytest.mark.parametrize(
    "text", [b"%d", b"%d" * 7, b"%q", b"%.0a" * 5 + b"%b", b"%.0a" * 6 + replica_blank(3), replica_blank(0)]
)
def test_a_damaged_text_is_an_error(bus: EmbeddedBus, text: bytes) -> None:
    block = column_blocks.opened(column_blocks.packed(columns_of([text], 1, random.Random(1))), 1)
    with pytest.raises(ValueError, match=r"."):
        list(block.lines(0))


def test_a_block_that_names_a_text_which_it_lacks_is_named(bus: EmbeddedBus) -> None:
    found = next(one for one in rows(bus) if is_block(one.body))
    broken = found.body[:-9] + b"otherwise"
    update = "UPDATE decisions SET body = ?, crc = ? WHERE seq = ? AND idx = ?"
    execute(bus.path, update, broken, zlib.crc32(broken), *found[:2])
    with pytest.raises(DamagedError, match=rf"\({found.seq}, {found.idx}\)"):
        bus.decisions((0, -1), ALL)


def test_few_decisions_stay_rows(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "small.db")
    bus.publish([EVENT])
    bus.commit(0, 1, runs_of(1, 4), [])
    assert [one.body for one in rows(bus)] != []
    small = DecidedRuns([run for run in runs_of(1, 4).runs if run.idx + run.decisions <= 60])
    bus.publish([EVENT])
    other = EmbeddedBus(tmp_path / "smaller.db")
    other.publish([EVENT])
    other.commit(0, 1, small, [])
    assert not any(is_block(one.body) for one in rows(other))
    assert other.decisions((0, -1), ALL) == texts_of(1, 4)[: len(small)]
    bus.close()
    other.close()


def test_a_text_that_is_not_there_is_damage(bus: EmbeddedBus) -> None:
    row = next(one for one in rows(bus) if is_block(one.body))
    block = opened(row, "bus").content
    assert isinstance(block, DecisionColumns)
    with pytest.raises(ValueError, match=f"of {len(block.texts) - 1}"):
        column_blocks.rows_in(replace(block, texts=block.texts[:-1]))
