"""The rows of an embedded bus's file, through a connection of their own."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def execute(path: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Execute one statement in a transaction of its own, and return its rows."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def mark_of(path: Path, name: str) -> int:
    """Read a mark; 0 if it was never set."""
    return sum(value for (value,) in execute(path, "SELECT value FROM marks WHERE name = ?", name))


def set_mark(path: Path, name: str, value: int) -> None:
    """Set a mark to the value of another version or of an older copy of the file."""
    execute(path, "INSERT OR REPLACE INTO marks VALUES (?, ?)", name, value)


def back_up(path: Path, to: Path) -> None:
    """Copy the file as it is now, while others may use it."""
    with closing(sqlite3.connect(path)) as here, closing(sqlite3.connect(to)) as there:
        here.backup(there)
