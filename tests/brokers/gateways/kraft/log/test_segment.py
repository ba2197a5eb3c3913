"""What a fetch reads of a segment: whole batches that fit, however large the unit is that holds them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.segment import Segment, Unit
from brokers.wire.batch_header import HEADER, batches_in
from brokers.wire.record_batch import encode_batch

# Of each event, how many bytes the record has that makes each of its batches.
EVENTS = ((10,), (700, 300, 900, 50), (20,), (), (400, 400))


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[Segment]:
    segment = Segment.create(tmp_path, End(0, 0, 0, 1, 0))
    offset, units = 0, []
    for seq, sizes in enumerate(EVENTS, 1):
        batches = [encode_batch(offset + at, 1, 0, [(None, b"x" * size)]) for at, size in enumerate(sizes)]
        offset += len(sizes)
        units.append(Unit(seq, 1, b"".join(batches), offset))
    segment.append(units)
    yield segment
    segment.close()


def test_each_read_has_the_batches_that_fit_and_at_least_one(segment: Segment) -> None:
    data = segment.path.read_bytes()
    batches = list(batches_in(data))
    for at, (position, batch) in enumerate(batches):
        for size in range(0, len(data) + 2, 7):
            read = segment.read(batch.base_offset, size)
            assert data[position:].startswith(read)
            assert read == data[position : position + len(read)]
            whole = [one for _, one in batches_in(read)]
            assert sum(one.size for one in whole) == len(read) >= batch.size
            assert len(read) <= max(size, batch.size)
            assert whole == [one for _, one in batches[at : at + len(whole)]]
    assert segment.read(len(batches), 1_000) == b""


def test_a_fetch_that_goes_on_gets_everything(segment: Segment) -> None:
    read, offset = b"", 0
    while piece := segment.read(offset, 800):
        read += piece
        *_, (_, last) = batches_in(piece)
        offset = last.next_offset
    assert read == segment.path.read_bytes()


def test_a_read_takes_no_more_from_the_disk_than_it_returns(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, position: int) -> Any:
        taken.append(size)
        return pread(descriptor, size, position)

    monkeypatch.setattr(os, "pread", counted)
    for offset in range(1, 5):
        taken.clear()
        read = segment.read(offset, 400)
        assert sum(taken) <= len(read) + HEADER.size * len(EVENTS[1])
