"""Spark's Python processes are forked; without the server they start cold, and are otherwise the same."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog
from structlog.testing import capture_logs

from streaming.forking import service
from streaming.forking.service import ForkServer
from tests.faults.disks import small_disk
from tests.support.waiting import TIMEOUT_S, wait_until

# It says what it was given, and what it did not have to import.
PROGRAM = """
import json, os, sys
given = {"arguments": sys.argv[1:], "name": __name__, "folder": os.getcwd(), "own": os.environ.get("OWN"),
         "input": sys.stdin.read(), "pid": os.getpid(),
         "is_warm": {"pandas", "streaming.sources.kafka"} <= set(sys.modules)}
print(json.dumps(given))
print("complaint", file=sys.stderr)
sys.exit(7)
"""
STARTER = """
import sys
from pathlib import Path
from streaming.forking.service import ForkServer
server = ForkServer(Path(sys.argv[1]))
server.wait_ready()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    # Longer than the name of a socket may be, and with what a shell would split.
    directory = tmp_path / ("a 'long' name " + "x" * 100)
    directory.mkdir()
    server = ForkServer(directory, ["streaming.sources.kafka"])
    server.wait_ready()
    yield server
    server.stop()
    assert list(directory.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module ``program``."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    return folder


def run(python: Path | str, folder: Path) -> dict[str, Any]:
    """Run the program as Spark runs its Pythons, and return what it said."""
    done = subprocess.run(
        [python, "-m", "program", "one", "two words"],
        input="text",
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"OWN": "é", "PYTHONPATH": str(folder)},
        timeout=TIMEOUT_S,
    )
    assert (done.returncode, done.stderr) == (7, "complaint\n")
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def servers() -> list[psutil.Process]:
    """Find the servers of this process. A child of another test may have ended without having been waited for."""
    alive = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in alive if "streaming.forking.server" in child.cmdline()]


def test_later_sessions_of_a_process_do_not_wait_for_a_ready_server(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "START_TIMEOUT_S", 0.1)
    with capture_logs() as said:
        server.wait_ready()
    assert said == [], "it would have waited in vain"


def test_a_forked_process_has_the_streams_environment_folder_and_arguments_of_a_cold_one(
    server: ForkServer, folder: Path
) -> None:
    warm, cold = run(server.python, folder), run(sys.executable, folder)
    assert (warm.pop("is_warm"), cold.pop("is_warm")) == (True, False)
    assert warm.pop("pid") != cold.pop("pid")
    assert warm == cold
    assert warm["input"] == "text"
    assert warm["own"] == "é"


def test_a_module_that_the_server_has_imported_runs_as_in_a_cold_process(server: ForkServer) -> None:
    # The daemon writes its port, and ends when its standard input does.
    warm, cold = (
        subprocess.run(
            [python, "-m", "pyspark.daemon", "pyspark.worker"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        for python in (server.python, sys.executable)
    )
    assert (warm.returncode, warm.stderr, len(warm.stdout)) == (cold.returncode, cold.stderr, len(cold.stdout))
    assert warm.stderr == b""


def test_a_process_whose_query_has_stopped_ends_without_a_stack(server: ForkServer, folder: Path) -> None:
    def said(program: str) -> str:
        (folder / "failing.py").write_text(program)
        command = [server.python, "-m", "failing"]
        environment = os.environ | {"PYTHONPATH": str(folder)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S)
        assert done.returncode == 1
        return done.stderr

    # As PySpark's runner of the source does when the JVM closes the socket while it answers.
    assert said("raise BrokenPipeError") == ""
    # As PySpark does when the JVM has removed the socket before the process connects to it.
    assert said("from pyspark.util import local_connect_and_auth as connect; connect('/gone.sock', None)") == ""
    assert "ValueError" in said("raise ValueError")
    # As PySpark's daemon does when the JVM closes the socket of a worker.
    printing = (
        "import sys, traceback\ntry:\n    raise {}\nexcept BaseException:\n    traceback.print_exc()\n    sys.exit(1)"
    )
    assert said(printing.format("BrokenPipeError")) == ""
    assert "ValueError" in said(printing.format("ValueError"))


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", mib=1) as disk:
        disk.fill()
        with pytest.raises(OSError, match=f"No space left on device: '{disk.folder}/python-.*/python'"):
            ForkServer(disk.folder)


def test_without_the_server_processes_start_cold(server: ForkServer, folder: Path) -> None:
    for one in servers():
        one.kill()
        one.wait(TIMEOUT_S)
    assert not server.is_usable
    assert run(server.python, folder)["is_warm"] is False


def test_spark_sees_that_a_forked_process_was_killed(server: ForkServer, folder: Path) -> None:
    command = [server.python, "-m", "program"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(folder)}, start_new_session=True
    ) as launcher:

        def forked() -> list[psutil.Process]:
            return [child for one in servers() for child in one.children()]

        wait_until(forked, "the forked process")
        [child] = forked()
        child.send_signal(signal.SIGKILL)
        assert launcher.wait(TIMEOUT_S) == 1


def test_the_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"ready\n"
        [server] = psutil.Process(starter.pid).children()
        starter.kill()
        starter.wait(TIMEOUT_S)
        server.wait(TIMEOUT_S)


def test_a_server_that_cannot_start_costs_only_speed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MODULES", ("no_such_module",))
    # A logger keeps the configuration that it had when it was first used.
    monkeypatch.setattr(service, "logger", structlog.get_logger())
    server = ForkServer(tmp_path)
    with capture_logs() as lines:
        server.wait_ready()
    assert ["they start more slowly" in line["event"] for line in lines] == [True]
    assert run(server.python, folder)["is_warm"] is False
    server.stop()


def test_a_server_whose_engine_ended_before_it_was_ready_says_nothing(tmp_path: Path) -> None:
    nobody, output = os.pipe()
    os.close(nobody)
    command = [sys.executable, "-P", "-m", "streaming.forking.server", "json"]
    environment = os.environ | {"PYTHONPATH": str(Path(service.__file__).parents[2])}
    try:
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, input=b"", stdout=output, stderr=subprocess.PIPE, timeout=TIMEOUT_S
        )
    finally:
        os.close(output)
    assert (ended.returncode, ended.stderr) == (0, b"")
