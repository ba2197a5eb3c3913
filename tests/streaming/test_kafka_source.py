"""The bus on Kafka as a Spark source: each batch waits in one file, in bounded slices."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus.kafka.bus import KafkaBus
from conf.settings import Settings
from streaming import fan_out
from streaming.sources import kafka
from tests.support.kafka_reader import reader_of
from tests.support.operators import events_in, fanned_out

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


@pytest.fixture
def bus(kafka_url: str) -> Iterator[KafkaBus]:
    bus = KafkaBus(kafka_url)
    yield bus
    bus.close()


def test_slices_are_bounded_by_bytes_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "BYTES_PER_ARROW_BATCH", 20)
    monkeypatch.setattr(fan_out, "ROWS_PER_ARROW_BATCH", 3)
    sizes = [10, 10, 10, 90, 1, 30, 5, 5, 5, 1]
    found = events_in(fanned_out([(nth, b"x" * size) for nth, size in enumerate(sizes, 1)], 1))
    assert [[len(one.raw or b"") for one in part] for part in found] == [
        [10, 10],
        [10],
        [90],
        [1],
        [30],
        [5, 5, 5],
        [1],
    ]


@pytest.mark.parametrize(
    ("timeout_ms", "interval_ms", "quiet_ms"),
    [
        # A second before it takes over, a standby takes in what is left.
        (3_000, 500, 2_000),
        # But not before a commit is missing.
        (1_000, 500, 750),
        (800, 250, 375),
        # And not later than at three quarters of the silence.
        (10_000, 4_900, 7_500),
        (500, 250, 375),
    ],
)
def test_a_standby_takes_in_the_last_commits_while_it_waits_for_its_turn(
    timeout_ms: int, interval_ms: int, quiet_ms: int
) -> None:
    settings = Settings(controller_standby_timeout_ms=timeout_ms, tick_idle_interval_ms=interval_ms)
    assert kafka.quiet_ms(settings) == quiet_ms


@pytest.mark.kafka_bus
def test_a_batch_waits_in_one_file_until_the_next_one(bus: KafkaBus, tmp_path: Path) -> None:
    events = [EVENT + b" " * number for number in range(8)]
    bus.publish(events)
    reader = reader_of(bus, tmp_path, max_events=3, max_bytes=1_000)
    # Spark notes offsets as JSON, and each of its processes has a reader of its own.
    start: dict[str, Any] = json.loads(json.dumps(reader.initialOffset()))
    taken: list[bytes] = []
    while (end := json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))) != start:
        (partition,) = reader.partitions(start, end)
        (file,) = tmp_path.iterdir()
        again = reader_of(bus, tmp_path / "nowhere").read(pickle.loads(pickle.dumps(partition)))
        taken += [one.raw or b"" for part in events_in(again) for one in part]
        start = end
    assert taken == events
    assert start == {"seq": len(events)}
    assert file.exists()
    reader.stop()
    assert not list(tmp_path.iterdir())
