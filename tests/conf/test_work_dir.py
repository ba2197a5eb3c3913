"""What killed processes leave is removed: at the next start, and with what still runs there."""

import subprocess
import sys
from pathlib import Path

from brokers.launch.kafka.preparing import end_services
from brokers.launch.process import DetachedProcess
from conf.class_archive import ClassArchive
from conf.java import java_home
from conf.work_dir import work_dir

ARCHIVE = """
from pathlib import Path
from conf.class_archive import ClassArchive
from conf.java import java_home
with ClassArchive(Path(PARENT), "program-1.0", java_home()).written() as options:
    Path(options[0].split("=")[1]).write_bytes(b"half an archive")
    wait()
"""
WORK = """
from pathlib import Path
from conf.work_dir import work_dir
with work_dir(Path(PARENT)) as directory:
    (directory / "part").write_bytes(b"half")
    wait()
"""
WAIT = """
import sys
PARENT = sys.argv[1]
def wait():
    print("ready", flush=True)
    sys.stdin.read()
"""


def killed(program: str, parent: Path) -> None:
    """Run a program until it waits, and kill it."""
    command = [sys.executable, "-c", WAIT + program, parent]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        other.kill()
    assert len(list(parent.iterdir())) == 1


def test_an_archive_that_a_killed_process_left_unfinished_goes_at_the_next_start_of_java(tmp_path: Path) -> None:
    killed(ARCHIVE, tmp_path)
    assert ClassArchive(tmp_path, "program-1.0", java_home()).options == []
    assert list(tmp_path.iterdir()) == []


def test_what_another_process_works_on_stays(tmp_path: Path) -> None:
    with work_dir(tmp_path) as one, work_dir(tmp_path) as other:
        assert sorted(tmp_path.iterdir()) == sorted([one, other])


def test_what_still_runs_in_the_directory_is_ended(tmp_path: Path) -> None:
    killed(WORK, tmp_path)
    [left] = tmp_path.iterdir()
    process = DetachedProcess(left / "node-1" / "process.json")
    (left / "node-1").mkdir()
    process.start([sys.executable, "-c", "import time; time.sleep(600)"], left, left / "log", {})
    assert process.state == "running"
    with work_dir(tmp_path, end_services) as directory:
        assert list(tmp_path.iterdir()) == [directory]
    assert process.state == "stopped"
