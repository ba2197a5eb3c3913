"""Another process that holds the lock of a bus file."""

import subprocess
import sys
from pathlib import Path

from tests.support.waiting import TIMEOUT_S

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == "all":
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("INSERT INTO marks VALUES ('held', 1)")
connection.execute("BEGIN EXCLUSIVE")
connection.execute("INSERT INTO marks VALUES ('holding', 1)")
print("held", flush=True)
sys.stdin.read()
"""


class Holder:
    """A process that holds a bus's lock until it is told to release it."""

    def __init__(self, path: Path, what: str = "writes") -> None:
        command = [sys.executable, "-c", HOLD, str(path), what]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "held\n"

    def let_go(self) -> None:
        self._process.communicate(timeout=TIMEOUT_S)
