"""Mock brokers with many logs, each an open file, and brokers at their limit of open files."""

import contextlib
import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.mock.log.directory import LogDirectory
from brokers.mock.log.log import LogConfig
from brokers.wire.errors import RefusedError
from state.events import TopicPartition
from tests.support.batches import batch
from tests.support.mock_cluster import START_TIMEOUT_S, MockCluster
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until

PLACE = TopicPartition("t", 0)


@contextlib.contextmanager
def open_files_max(count: int) -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, open no file under a number of ``count`` or more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def files_open_in(folder: Path) -> list[str]:
    """Return the files under ``folder`` that this process has open."""
    opened = []
    for descriptor in Path("/proc/self/fd").iterdir():
        # The directory was listed through a descriptor that is closed by now.
        with contextlib.suppress(FileNotFoundError):
            opened.append(os.readlink(descriptor))
    return [path for path in opened if path.startswith(f"{folder}/")]


@pytest.mark.mock_brokers
def test_a_broker_has_more_logs_than_its_soft_limit_of_open_files(tmp_path: Path) -> None:
    engine, cluster = RulesEngine(), MockCluster(tmp_path, size=1)
    engine.start(cluster.bus_path)
    try:
        # Tests before this one may have left files open until they are collected.
        gc.collect()
        most = descriptors() + 50
        with open_files_max(most):
            cluster.launch(1)
        wait_until(lambda: 1 in cluster.active(), "the broker to be active", START_TIMEOUT_S)
        cluster.create_topic("t", {str(number): [1] for number in range(most + 50)})
        done = {"1": 0}
        wait_until(lambda: all(p["completed_epochs"] == done for p in cluster.partitions("t")), "it to lead them all")
    finally:
        cluster.stop()
        engine.stop()


def test_a_log_that_cannot_be_opened_now_stays_where_it_is(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    log = directory.open_log(PLACE, "id", LogConfig(segment_bytes=1))
    for value in (b"x", b"y"):
        log.append_as_leader(batch(value), 0)
    log.close()
    with open_files_max(0), pytest.raises(OSError, match="Too many open files") as raised:
        directory.open_log(PLACE, "id", LogConfig())
    directory.lost(raised.value)
    assert not directory.is_lost
    assert [folder.name for folder in tmp_path.iterdir() if folder.is_dir()] == ["t-0"]
    log = directory.open_log(PLACE, "id", LogConfig())
    assert log.log_end_offset == 2
    log.close()


def test_a_log_of_which_some_segments_can_be_opened_leaves_none_open(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    log = directory.open_log(PLACE, "id", LogConfig(segment_bytes=1))
    for _ in range(9):
        log.append_as_leader(batch(b"x"), 0)
    assert len(files_open_in(tmp_path)) >= 9
    log.close()
    taken = [os.dup(0) for _ in range(5)]
    for one in taken:
        os.close(one)
    with open_files_max(taken[-1]), pytest.raises(OSError, match="Too many open files"):
        directory.open_log(PLACE, "id", LogConfig())
    assert files_open_in(tmp_path) == []


def test_a_log_that_is_closed_twice_closes_no_other_file(tmp_path: Path) -> None:
    log = LogDirectory(tmp_path).open_log(PLACE, "id", LogConfig())
    log.append_as_leader(batch(b"x"), 0)
    log.close()
    with (tmp_path / "other").open("w") as other:
        log.close()
        os.fstat(other.fileno())
    with pytest.raises(RefusedError, match="Bad file descriptor"):
        log.read(0, 1, 1)
