"""A replay on a machine so busy that Spark gives up on its Python workers; without Spark."""

from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from bus.interface import Bus, Entry
from conf.settings import Settings
from streaming import replay
from streaming.late_workers import LATE_WORKERS_MAX

LATE_WORKER = "org.apache.spark.SparkException: Python worker failed to connect back."


class Query:
    """A query that fails with ``error``, or decides event 1."""

    isActive = False

    def __init__(self, bus: Bus, error: str) -> None:
        self.bus = bus
        self.error = error

    def awaitTermination(self, timeout_s: float) -> bool:
        if self.error:
            raise StreamingQueryException(self.error)
        self.bus.commit(0, 1, [], [])
        return False

    def stop(self) -> None:
        pass


def replayed(monkeypatch: pytest.MonkeyPatch, errors: list[str]) -> None:
    """Replay one event; each query fails with the next of ``errors``, and the query after them succeeds."""
    left = iter([*errors, ""])

    def start_query(session: Any, bus: Bus, *rest: object, **options: object) -> Query:
        return Query(bus, next(left))

    monkeypatch.setattr(replay, "start_query", start_query)
    monkeypatch.setattr(replay, "build_session", lambda settings, directory: None)
    monkeypatch.setattr(replay, "choose_java", lambda: None)
    replay.replay([Entry(1, b"{}")], Settings(), {})
    assert next(left, None) is None


def test_a_replay_starts_its_query_again_if_a_worker_was_late(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed(monkeypatch, [LATE_WORKER] * LATE_WORKERS_MAX)


def test_a_replay_gives_up_on_workers_that_are_always_late(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="failed to connect back"):
        replayed(monkeypatch, [LATE_WORKER] * (LATE_WORKERS_MAX + 1))


def test_a_replay_does_not_repeat_another_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="corrupted"):
        replayed(monkeypatch, ["java.io.IOException: Stream is corrupted"])
