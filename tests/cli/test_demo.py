"""The demo: its arithmetic, its whole story, and that it leaves nothing behind."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from isrflow.cli.demo.traffic import Account, Acked, account

COMMAND = [sys.executable, "-c", "from isrflow.cli import main; main()", "demo"]


def acked(*records: tuple[int, int]) -> dict[int, list[Acked]]:
    return {0: [Acked(offset, number, 0.0) for offset, number in records]}


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ([(0, 10), (1, 11)], Account(2, 2, 0, 0, 0)),
        ([(0, 10), (1, 11), (2, 12)], Account(2, 3, 0, 0, 0)),
        ([(0, 10)], Account(2, 1, 1, 0, 0)),
        ([(0, 10), (1, 12)], Account(2, 2, 1, 0, 0)),
        ([(0, 10), (1, 11), (2, 10)], Account(2, 3, 0, 1, 1)),
        ([], Account(2, 0, 2, 0, 0)),
    ],
)
def test_what_was_acknowledged_must_be_read_once_where_it_was_said_to_be(
    read: list[tuple[int, int]], expected: Account
) -> None:
    made = account(acked((0, 10), (1, 11)), {0: read})
    assert made == expected
    assert made.is_clean == (expected.lost == expected.duplicates == expected.out_of_order == 0)


def processes_of(directory: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(directory in part for part in process.info["cmdline"] or []):
            found.append(process)
    return found


def directory_in(line: str) -> str:
    found = re.match(r"Working in ([^;]+);", line)
    assert found, line
    return found[1]


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(240)
def test_the_whole_story_loses_nothing_and_leaves_nothing() -> None:
    done = subprocess.run([*COMMAND, "--plain"], capture_output=True, text=True, timeout=220)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^lost: +0$", done.stdout, re.MULTILINE)
    assert re.search(r"^duplicates: +0$", done.stdout, re.MULTILINE)
    assert len(re.findall(r" \d/8 ", done.stdout)) == 8
    directory = directory_in(done.stdout)
    assert not Path(directory).exists()
    assert processes_of(directory) == []


@pytest.mark.spark
@pytest.mark.cluster
def test_stopped_half_way_it_leaves_no_process() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout
        directory = directory_in(demo.stdout.readline())
        deadline = time.monotonic() + 30
        while len(processes_of(directory)) < 5 and time.monotonic() < deadline:
            time.sleep(0.1)
        # The engine, Spark's JVM and three brokers.
        assert len(processes_of(directory)) >= 5
        demo.send_signal(signal.SIGTERM)
        _, said = demo.communicate(timeout=30)
    assert (demo.returncode, said) == (1, "\nAborted!\n")
    assert not Path(directory).exists()
    assert processes_of(directory) == []


@pytest.mark.cluster
def test_a_process_that_ends_by_itself_is_named_with_its_log(tmp_path: Path) -> None:
    from isrflow.cli.demo.processes import DemoError, Process

    log = tmp_path / "broker-1.log"
    process = Process("broker 1", [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"], log)
    process._popen.wait(10)
    with pytest.raises(
        DemoError, match=r"broker 1 ended by itself with 3; its log .*broker-1.log ends with:\nthe reason"
    ):
        process.check()
    process.kill()
    process.check()
