"""A failed query is restarted once in a while, and only if a new checkpoint can mend it. Runs without Spark."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from structlog.testing import capture_logs

from bus.embedded import EmbeddedBus
from bus.interface import BusError, Decided, FencedError
from conf.settings import Settings
from streaming import checkpoint, decider
from streaming.checkpoint import has_batches, settle
from streaming.deadlines import LateError
from streaming.decider import WELL_AFTER_S
from streaming.job_errors import JobError, SupersededError
from streaming.late_workers import LATE_WORKERS_MAX
from tests.support.scripted_queries import Query, Started

Logged = list[Any]
PARTITIONS = Settings().shuffle_partitions


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """A bus decided to seq 9, and its checkpoint at the same position."""
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.claim("job", {}, 1)
    bus.publish([b"event"] * 20)
    settle(tmp_path / "checkpoint", bus, PARTITIONS)
    Query(tmp_path / "checkpoint", lambda outcomes: None).batch(0, 9)
    bus.commit(1, 9, [Decided(8, 0, b"said")], [])
    started = Started(bus, tmp_path / "checkpoint")
    monkeypatch.setattr(decider, "start_query", started)
    yield started
    bus.close()


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logged]:
    """The log lines of the test, from new loggers, because a used logger keeps its former test's settings."""
    for module in (checkpoint, decider):
        monkeypatch.setattr(module, "logger", structlog.get_logger())
    with capture_logs() as entries:
        yield entries


def test_a_failed_query_restarts_from_the_bus(started: Started, logged: Logged) -> None:
    with started.decider() as running:
        started.queries[0].fail("Caused by: java.io.IOException: Stream is corrupted")
        assert not running.is_active()
        running.go_on()
        assert running.is_active()
    assert [query.began_with_batches for query in started.queries] == [True, False]
    assert not started.queries[1].isActive
    assert has_batches(started.checkpoint.with_name("checkpoint.aside"))
    [moved] = [entry for entry in logged if entry["event"].startswith("moved the checkpoint aside")]
    assert "IOException: Stream is corrupted" in str(moved)


def test_a_superseded_job_does_not_move_the_checkpoint_on_which_its_successor_decides(started: Started) -> None:
    with started.decider() as running:
        started.queries[0].fail("Caused by: java.io.FileNotFoundException: 7.changelog")
        started.bus.claim("successor", {}, 1)
        with pytest.raises(SupersededError):
            running.go_on()
    assert has_batches(started.checkpoint)
    assert len(started.queries) == 1


def test_a_query_that_cannot_start_is_restarted(started: Started) -> None:
    started.refuse = [AnalysisException("[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] it is missing")]
    with started.decider() as running:
        assert running.is_active()
    assert [query.began_with_batches for query in started.queries] == [False]


def test_a_query_is_restarted_once(started: Started) -> None:
    with started.decider() as running:
        started.queries[0].fail("one")
        running.go_on()
        started.queries[1].batch(0, 12)
        started.bus.commit(1, 12, [], [])
        started.queries[1].fail("java.io.IOException: two")
        with pytest.raises(JobError, match=r"^the query failed: IOException: two$"):
            running.go_on()
    assert len(started.queries) == 2


def test_a_query_that_has_decided_for_long_after_a_restart_is_restarted_again(started: Started) -> None:
    with started.decider() as running:
        for number in range(1, 4):
            started.queries[-1].batch(number, 9 + number)
            started.bus.commit(1, 9 + number, [], [])
            started.queries[-1].fail("java.io.EOFException: a Python worker is gone")
            running.go_on()
            started.now_s += WELL_AFTER_S
        assert running.is_active()
    assert [query.began_with_batches for query in started.queries] == [True, False, False, False]


def test_a_query_that_decided_nothing_for_long_after_a_restart_is_not_restarted_again(started: Started) -> None:
    with started.decider() as running:
        started.queries[0].fail("one")
        running.go_on()
        started.now_s += WELL_AFTER_S
        started.queries[1].fail("java.io.IOException: two")
        with pytest.raises(JobError, match=r"IOException: two$"):
            running.go_on()
    assert len(started.queries) == 2


def test_a_query_that_decided_nothing_on_a_new_checkpoint_is_not_restarted(started: Started) -> None:
    (started.checkpoint / "commits" / "0").unlink()
    settle(started.checkpoint, started.bus, PARTITIONS)
    with started.decider() as running:
        started.queries[0].fail("java.lang.IllegalStateException: always")
        with pytest.raises(JobError, match="always"):
            running.go_on()


def test_a_query_whose_checkpoint_was_deleted_is_restarted(started: Started) -> None:
    with started.decider() as running:
        started.checkpoint.rename(started.checkpoint.with_name("deleted"))
        started.queries[0].fail("java.io.FileNotFoundException: gone")
        running.go_on()
        assert running.is_active()


def test_differing_decisions_stay_as_first_written(started: Started) -> None:
    def otherwise(outcomes: Iterable[bytes]) -> None:
        started.bus.commit(1, 9, [Decided(8, 0, b"other")], [])

    started.write = otherwise  # type: ignore[method-assign]
    with started.decider() as running:
        started.queries[0].fail_to_commit()
        running.go_on()
        assert running.is_active()
    assert [body for _, _, body in started.bus.decisions((0, -1), 10)] == [b"said"]


@pytest.mark.parametrize(
    ("raised", "match"),
    [
        (FencedError("epoch 2 was claimed"), "epoch 2"),
        (BusError("bus x: disk I/O error"), "disk I/O"),
        (LateError("a request expired"), "a request expired"),
    ],
)
def test_errors_of_the_bus_and_fencing_are_raised_unchanged(started: Started, raised: Exception, match: str) -> None:
    started.write_error = raised
    with started.decider() as running:
        started.queries[0].fail_to_commit()
        with pytest.raises(type(raised), match=match):
            running.go_on()
    assert has_batches(started.checkpoint)


@pytest.mark.parametrize(
    ("text", "raised", "match"),
    [
        ("java.io.IOException: No space left on device", JobError, "there is no room for the checkpoint"),
        ("isrflow.errors.BusError: bus x: database is locked", BusError, "^bus x: database is locked"),
    ],
)
def test_an_error_that_a_new_checkpoint_does_not_cure_ends_the_job(
    started: Started, text: str, raised: type[Exception], match: str
) -> None:
    with started.decider() as running:
        started.queries[0].fail(text)
        with pytest.raises(raised, match=match):
            running.go_on()
    assert has_batches(started.checkpoint)


def test_a_directory_of_sparks_that_was_deleted_is_named(started: Started, tmp_path: Path) -> None:
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    started.spark_conf = {"spark.local.dir": str(tmp_path), "spark.python.unix.domain.socket.dir": str(sockets)}
    with started.decider() as running:
        sockets.rmdir()
        started.queries[0].fail("java.net.SocketException: No such file or directory")
        with pytest.raises(JobError, match=f"{sockets} was deleted, and Spark needs it"):
            running.go_on()
    assert has_batches(started.checkpoint)


def test_a_bus_that_is_gone_ends_the_job(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> int:
        raise BusError("bus x: unable to open database file")

    with started.decider() as running:
        started.queries[0].fail("whatever")
        monkeypatch.setattr(started.bus, "last_seq", gone)
        with pytest.raises(BusError, match="unable to open"):
            running.go_on()


def test_the_cause_of_the_end_is_not_hidden_by_the_stop(started: Started) -> None:
    def stuck() -> None:
        raise Py4JError("time-out")

    with pytest.raises(BusError, match="gone"), started.decider():
        started.queries[0].stop = stuck  # type: ignore[method-assign]
        raise BusError("gone")
    with pytest.raises(Py4JError), started.decider():
        started.queries[1].stop = stuck  # type: ignore[method-assign]


LATE_WORKER = (
    "org.apache.spark.SparkException: Python worker failed to connect back.\n\tat java.net.ServerSocket.accept"
)


def late_workers(logged: Logged) -> int:
    return sum("a Python worker was too slow to connect" in entry["event"] for entry in logged)


def test_a_query_whose_worker_was_late_is_started_again_on_the_same_checkpoint(
    started: Started, logged: Logged
) -> None:
    with started.decider() as running:
        for query in range(LATE_WORKERS_MAX):
            started.queries[query].fail(LATE_WORKER)
            running.go_on()
        assert running.is_active()
    assert [query.began_with_batches for query in started.queries] == [True] * (1 + LATE_WORKERS_MAX)
    assert not started.checkpoint.with_name("checkpoint.aside").exists()
    assert late_workers(logged) == LATE_WORKERS_MAX


def test_a_query_that_spark_refuses_to_start_because_of_a_late_worker_is_started_again(started: Started) -> None:
    started.refuse = [AnalysisException(LATE_WORKER)] * LATE_WORKERS_MAX
    with started.decider() as running:
        assert running.is_active()
    assert [query.began_with_batches for query in started.queries] == [True]


def test_workers_that_are_always_late_end_the_job(started: Started, logged: Logged) -> None:
    (started.checkpoint / "commits" / "0").unlink()
    settle(started.checkpoint, started.bus, PARTITIONS)
    started.refuse = [AnalysisException(LATE_WORKER)] * 100
    with pytest.raises(JobError, match="failed to connect back"), started.decider():
        raise AssertionError("the query has started")
    assert late_workers(logged) == LATE_WORKERS_MAX
    assert len(started.refuse) == 100 - 1 - LATE_WORKERS_MAX


def test_late_workers_count_from_the_last_start_that_decided(started: Started) -> None:
    with started.decider() as running:
        for batch in range(1, 3 * LATE_WORKERS_MAX):
            started.queries[-1].batch(batch, 9 + batch)
            started.bus.commit(1, 9 + batch, [], [])
            started.queries[-1].fail(LATE_WORKER)
            running.go_on()
        assert running.is_active()


def test_a_late_worker_after_the_checkpoint_was_moved_aside_is_forgiven_too(started: Started) -> None:
    with started.decider() as running:
        started.queries[0].fail("java.io.IOException: Stream is corrupted")
        running.go_on()
        started.queries[1].fail(LATE_WORKER)
        running.go_on()
        assert running.is_active()
    assert [query.began_with_batches for query in started.queries] == [True, False, False]


def test_events_that_were_removed_undecided_are_one_error(
    started: Started, monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    monkeypatch.setattr(EmbeddedBus, "kept_after", lambda bus: 12)
    with started.decider() as running:
        started.queries[0].fail("org.apache.spark.SparkException: TrimmedError: events up to 12 were removed")
        running.go_on()
    [line] = [entry for entry in logged if entry["event"] == "undecided events were removed"]
    assert (line["log_level"], line["through"]) == ("error", 12)
