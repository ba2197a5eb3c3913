"""A detached process is found again by its id and the moment it started, and no other is taken for it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from brokers.launch.process import DetachedProcess, start_of
from tests.support.waiting import TIMEOUT_S, wait_until

# A parent that never reaps its child, like the first process of many containers.
CARELESS = """
import sys, time
from pathlib import Path
from brokers.launch.process import DetachedProcess
folder = Path(sys.argv[1])
DetachedProcess(folder / "process.json").start(sys.argv[2:], folder, folder / "out.log")
print("started", flush=True)
time.sleep(60)
"""
# The first thread ends, so the process looks like a zombie, and another thread goes on.
HALF_ENDED = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""
SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[DetachedProcess]:
    found = DetachedProcess(tmp_path / "process.json")
    found.start(SLEEPER, tmp_path, tmp_path / "out.log")
    yield found
    found.kill()


def test_a_process_is_found_again_later(process: DetachedProcess, tmp_path: Path) -> None:
    other = DetachedProcess(tmp_path / "process.json")
    assert process.pid == other.pid is not None
    assert other.state == "running"
    assert other.signal(signal.SIGTERM)
    assert other.wait(TIMEOUT_S)
    assert (process.state, process.pid, other.state) == ("stopped", None, "stopped")
    assert not other.signal(signal.SIGTERM)


def test_a_frozen_process_says_so_and_can_be_killed(process: DetachedProcess) -> None:
    process.signal(signal.SIGSTOP)
    wait_until(lambda: process.state == "paused", "the process to be frozen")
    assert not process.wait(0.05)
    process.kill()
    assert process.state == "stopped"


def test_another_process_with_a_reused_id_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen(SLEEPER, stdout=subprocess.DEVNULL)
    try:
        identity = tmp_path / "process.json"
        identity.write_bytes(msgspec.json.encode({"pid": stranger.pid, "started": start_of(psutil.Process())}))
        process = DetachedProcess(identity)
        assert (process.state, process.pid) == ("stopped", None)
        process.kill()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("ended", ["killed", "terminated"])
def test_an_ended_process_that_nobody_reaps_is_not_waited_for(tmp_path: Path, ended: str) -> None:
    command = [sys.executable, "-c", CARELESS, tmp_path, *SLEEPER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as careless:
        assert careless.stdout is not None
        careless.stdout.readline()
        process = DetachedProcess(tmp_path / "process.json")
        assert process.state == "running"
        if ended == "killed":
            process.kill()
        else:
            process.signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S)
        assert process.state == "stopped"
        careless.kill()


def test_a_process_is_there_until_its_last_thread_has_ended(tmp_path: Path) -> None:
    process = DetachedProcess(tmp_path / "process.json")
    found = psutil.Process(process.start([sys.executable, "-c", HALF_ENDED], tmp_path, tmp_path / "out.log"))
    wait_until(lambda: found.status() == psutil.STATUS_ZOMBIE, "the first thread to end")
    assert not process.wait(0.05)
    process.kill()
    assert process.state == "stopped"


def test_a_step_of_the_clock_changes_nothing(process: DetachedProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    create_time = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda found: create_time(found) + 3_600)
    assert process.state == "running"


@pytest.mark.parametrize("content", [None, b"", b"{}"])
def test_a_folder_without_an_identity_has_no_process(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "process.json").write_bytes(content)
    assert DetachedProcess(tmp_path / "process.json").state == "stopped"


def test_a_process_reads_no_settings_file_that_only_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISRFLOW_CONF", "elsewhere.toml")
    process = DetachedProcess(tmp_path / "process.json")
    code = "import os; print([name for name in os.environ if name == 'ISRFLOW_CONF'])"
    process.start([sys.executable, "-c", code], tmp_path, tmp_path / "out.log")
    assert process.wait(TIMEOUT_S)
    assert (tmp_path / "out.log").read_text() == "[]\n"


def test_a_process_that_could_not_be_found_again_is_ended(tmp_path: Path) -> None:
    process = DetachedProcess(tmp_path / "nowhere" / "process.json")
    with pytest.raises(FileNotFoundError):
        process.start([*SLEEPER, str(tmp_path)], tmp_path, tmp_path / "out.log")
    commands = [one.info["cmdline"] for one in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if command and str(tmp_path) in command]
