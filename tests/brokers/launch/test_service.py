"""The processes of a cluster: how a process that ends, or never gets ready, is reported."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.launch.service import Service, ServiceError, kill_all

WAITS = "import time; print('up', flush=True); time.sleep(60)"
ENDS = "print('the reason'); raise SystemExit(3)"
FAILS_AS_JAVA_DOES = r"print('the reason' + '\n\tat a.B.c(B.java:1)' * 20); raise SystemExit(1)"
WAITS_TO_BE_TOLD = """
import pathlib, sys, time
while not pathlib.Path("go").exists():
    time.sleep(0.01)
print("up", flush=True)
time.sleep(60)
"""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


class Program(Service):
    """A service that runs a line of Python; it is ready once it has printed ``up``."""

    def __init__(self, folder: Path, program: str) -> None:
        super().__init__("broker 1", folder, "broker.log")
        self._program = program

    def command(self) -> list[str]:
        return [sys.executable, "-c", self._program]

    def figures(self) -> dict[str, int]:
        return {"ups": self.log_file.read_text().count("up") if self.log_file.exists() else 0}

    def is_ready(self) -> bool:
        return self.figures()["ups"] > self.before["ups"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "broker-1"
    Program(tmp_path / "broker-1", "").kill()


def test_a_service_is_found_by_its_folder_and_stops(folder: Path) -> None:
    service = Program(folder, WAITS)
    service.start()
    service.wait_until_started(20)
    found = Program(folder, WAITS)
    assert (found.state, found.pid) == ("running", service.pid)
    with pytest.raises(ServiceError, match=f"broker 1 already runs as process {service.pid}"):
        found.start()
    assert found.stop(10)
    assert service.state == "stopped"
    found.check()


def test_a_service_that_ends_by_itself_is_named_with_its_log(folder: Path) -> None:
    service = Program(folder, ENDS)
    service.start()
    with pytest.raises(ServiceError, match=r"broker 1 ended by itself; its log .*broker\.log ends with:\nthe reason"):
        service.wait_until_started(20)


def test_a_reason_is_shown_however_many_calls_java_lists_below_it(folder: Path) -> None:
    service = Program(folder, FAILS_AS_JAVA_DOES)
    service.start()
    with pytest.raises(ServiceError, match=r"ends with:\nthe reason$"):
        service.wait_until_started(20)


def test_a_service_that_never_gets_ready_is_reported_after_the_time_out_with_its_log(folder: Path) -> None:
    service = Program(folder, WAITS.replace("'up'", "'the reason'"))
    service.start()
    service.wait_until(lambda: "the reason" in service.last_lines(), 20, "printed nothing")
    expected = (
        r"broker 1 did not start in 0 s: waited for it to be ready; process \d+ is running and has used [\d.]+ s of CPU"
        r"; its log .*broker\.log ends with:\nthe reason"
    )
    with pytest.raises(ServiceError, match=expected):
        service.wait_until_started(0.2)


def test_if_the_command_that_started_a_service_was_killed_the_next_command_waits_for_the_service(folder: Path) -> None:
    before = Program(folder, WAITS)
    before.start()
    before.wait_until_started(20)
    before.kill()
    Program(folder, WAITS_TO_BE_TOLD).start()
    with pytest.raises(ServiceError, match="broker 1 did not start in 0 s"):
        Program(folder, WAITS_TO_BE_TOLD).wait_until_started(0.2)
    (folder / "go").touch()
    Program(folder, WAITS_TO_BE_TOLD).wait_until_started(20)


def start_and_roll_the_log(folder: Path) -> None:
    """Start a service, and empty its log, which then no longer shows the start."""
    started = Program(folder, WAITS)
    started.start()
    started.wait_until_started(20)
    started.log_file.write_text("")


def test_a_service_that_was_ready_is_not_waited_for_again(folder: Path) -> None:
    start_and_roll_the_log(folder)
    Program(folder, WAITS).wait_until_started(0.2)


def test_a_service_that_does_not_stop_is_killed(folder: Path) -> None:
    service = Program(folder, STUBBORN)
    service.start()
    service.wait_until_started(20)
    assert not service.stop(0.3)
    assert service.state == "stopped"
    service.check()


def test_a_service_that_cannot_be_killed_does_not_keep_the_others_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = [Program(tmp_path / name, WAITS) for name in ("a", "b", "c")]
    tried: list[Service] = []

    def kill(service: Service) -> None:
        tried.append(service)
        if service is not services[2]:
            raise TimeoutError(service.folder.name)

    monkeypatch.setattr(Service, "kill", kill)
    with pytest.raises(TimeoutError, match="a"):
        kill_all(services)
    assert tried == services
