"""A detached process is found again by its id and the moment it started, and no other is taken for it."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from isrflow.brokers.process import DetachedProcess

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[DetachedProcess]:
    found = DetachedProcess(tmp_path / "process.json")
    found.start(SLEEPER, tmp_path, tmp_path / "out.log")
    yield found
    found.kill()


def test_whoever_looks_later_finds_it(process: DetachedProcess, tmp_path: Path) -> None:
    other = DetachedProcess(tmp_path / "process.json")
    assert process.pid == other.pid is not None
    assert other.state == "running"
    assert other.signal(signal.SIGTERM)
    assert other.wait(10)
    assert (process.state, process.pid, other.state) == ("stopped", None, "stopped")
    assert not other.signal(signal.SIGTERM)


def test_a_frozen_process_says_so_and_can_be_killed(process: DetachedProcess) -> None:
    process.signal(signal.SIGSTOP)
    end = time.monotonic() + 10
    while process.state != "paused":
        assert time.monotonic() < end
    assert not process.wait(0.05)
    process.kill()
    assert process.state == "stopped"


def test_another_process_with_the_same_id_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen(SLEEPER, stdout=subprocess.DEVNULL)
    try:
        started_s = psutil.Process(stranger.pid).create_time()
        identity = tmp_path / "process.json"
        identity.write_bytes(msgspec.json.encode({"pid": stranger.pid, "started_s": started_s - 60}))
        process = DetachedProcess(identity)
        assert (process.state, process.pid) == ("stopped", None)
        process.kill()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", [None, b"", b"{}"])
def test_without_an_identity_nothing_runs(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "process.json").write_bytes(content)
    assert DetachedProcess(tmp_path / "process.json").state == "stopped"
