"""The bus as a source: what it hands to Spark."""

from pathlib import Path

import pytest

from isrflow.bus.embedded import EmbeddedBus
from isrflow.bus.interface import Entry
from isrflow.streaming import source
from isrflow.streaming.source import BusReader

FIRST = 10**12


def test_a_log_whose_seqs_stand_far_apart_is_read_by_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "ROWS_PER_ARROW_BATCH", 2)
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.load([Entry(FIRST + nth * 2**20, b"%d" % nth) for nth in range(5)])
    reader = BusReader({"path": str(bus.path), "max_events": "3", "after": "0", "wait": "false"})
    start = {"seq": 0}
    taken: list[list[bytes]] = []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        (span,) = reader.partitions(start, end)
        taken += [batch.column(1).to_pylist() for batch in reader.read(span)]
        start = end
    assert taken == [[b"0", b"1"], [b"2"], [b"3", b"4"]]
    reader.stop()
    bus.close()
