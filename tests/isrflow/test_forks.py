"""A program that forks keeps what it publishes: the child closes the connections that it inherited."""

import subprocess
import sys
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from tests.support.bus_rows import execute
from tests.support.waiting import TIMEOUT_S

# The child goes on when the parent has closed its bus, so that SQLite might remove the log under it.
FORK = """
import os, sqlite3, sys, threading, time
import isrflow
from bus.embedded import EmbeddedBus
from isrflow.sqlite.bus_file import Access

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
path, opened, in_child, busy = sys.argv[1:]


def connect():
    if opened == "engine":
        return EmbeddedBus(path, Access.WRITE)
    return isrflow.connect(path)


def publish(bus):
    return bus.publish([EVENT]) if opened == "engine" else bus.publish({"kind": "delete_topic", "topic": "t"})


bus = connect()
publish(bus)
used, end = threading.Event(), threading.Event()
lock = sqlite3.connect(path, isolation_level=None)
if busy == "other thread":
    threading.Thread(target=lambda: (publish(bus), used.set(), end.wait()), daemon=True).start()
    used.wait()
elif busy == "call":
    lock.execute("BEGIN IMMEDIATE")
    caller = threading.Thread(target=lambda: (used.set(), publish(bus)))
    caller.start()
    used.wait()
    # Long enough to be in the call, which waits for the lock.
    time.sleep(0.5)
elif busy == "ended thread":
    ended = threading.Thread(target=publish, args=[bus])
    ended.start()
    ended.join()
closed, close = os.pipe()
ready, be_ready = os.pipe()
child = os.fork()
if child == 0:
    os.close(close)
    try:
        bus = connect() if in_child == "connects" else bus
        os.close(be_ready)
        os.read(closed, 1)
        print("published", publish(bus), flush=True)
    except isrflow.BusError as error:
        print(error, flush=True)
    os._exit(0)
os.close(be_ready)
os.read(ready, 1)
end.set()
if busy == "call":
    lock.execute("COMMIT")
    caller.join()
lock.close()
bus.close()
os.close(close)
os.waitpid(child, 0)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    EmbeddedBus(tmp_path / "bus.db").close()
    return tmp_path / "bus.db"


def fork(path: Path, opened: str, in_child: str, busy: str) -> str:
    command = [sys.executable, "-c", FORK, str(path), opened, in_child, busy]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=TIMEOUT_S).stdout


def events(path: Path) -> int:
    [(count,)] = execute(path, "SELECT count(*) FROM events")
    return int(count)


@pytest.mark.parametrize("opened", ["client", "engine"])
@pytest.mark.parametrize("in_child", ["goes on", "connects"])
@pytest.mark.parametrize(("busy", "before"), [("nothing", 1), ("ended thread", 2), ("other thread", 2)])
def test_what_a_forked_process_publishes_is_kept(
    path: Path, opened: str, in_child: str, busy: str, before: int
) -> None:
    assert fork(path, opened, in_child, busy) == f"published {before + 1}\n"
    assert events(path) == before + 1


@pytest.mark.parametrize("in_child", ["goes on", "connects"])
def test_a_fork_while_another_thread_is_in_a_call_is_an_error(path: Path, in_child: str) -> None:
    said = fork(path, "client", in_child, "call")
    assert "this process was forked in the middle of a use of the bus" in said
    assert events(path) == 2
