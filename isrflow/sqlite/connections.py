"""The SQLite connections of this process to a bus file: one for each thread, and none that came by a fork.

The problem: a forked process has its parent's connections, but not the parent's locks on the file. SQLite in the child
believes that it has them, for new connections too. When the parent closes the bus, nobody seems to have it open, so
SQLite removes the write-ahead log. The child goes on writing to a file without a name: what it publishes is
acknowledged, and lost.

So a child closes what it inherited, before it does anything else. Then it opens connections of its own.

    connection of the thread that forked     closed in the child
    connection of a thread that has ended    closed in the child
    connection in a transaction, or of another thread, which may be in the middle of a call
                                             left as it is: using or closing it could damage the file, so the child
                                             may not use this file at all
"""

import contextlib
import os
import sqlite3
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path

from isrflow.errors import BusError
from isrflow.sqlite.file_identity import Identity

_lock = threading.RLock()
_all: "weakref.WeakSet[Connections]" = weakref.WeakSet()
# Inherited and left as they are, by file. Kept, because Python closes a connection that nobody refers to.
_inherited: dict[Identity, list[sqlite3.Connection]] = {}


@dataclass
class Held:
    """One thread's connection, and what the thread knows of the file."""

    connection: sqlite3.Connection
    # The file's state if it is read as immutable, without locks.
    unwritten: tuple[int, ...] | None
    data_version: int | None = None


class Connections:
    """This process's connections to one file."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self._path = path
        self._identity = identity
        self._local = threading.local()
        # Each with the thread that uses it.
        self._threads: dict[sqlite3.Connection, threading.Thread] = {}
        # What the child of a fork under way may close.
        self._idle: list[sqlite3.Connection] = []
        with _lock:
            _all.add(self)

    def mine(self) -> Held | None:
        """Return what this thread holds; None if it has no connection yet."""
        held: Held | None = getattr(self._local, "held", None)
        return held

    def check_usable(self) -> None:
        """Raise ``BusError`` if this process may not open the file."""
        if self._identity in _inherited:
            raise BusError(
                f"bus {self._path}: this process was forked while another thread or a transaction used the bus, so it "
                "cannot use it: start it without a fork, in multiprocessing with 'spawn', or fork before connecting"
            )

    def hold(self, held: Held) -> None:
        """Keep this thread's connection. Close those of ended threads: a program may have a thread for each request."""
        with _lock:
            for connection in [one for one, thread in self._threads.items() if not thread.is_alive()]:
                del self._threads[connection]
                connection.close()
            self._threads[held.connection] = threading.current_thread()
        self._local.held = held

    def drop_mine(self) -> None:
        """Close this thread's connection."""
        held = self.mine()
        if held is not None:
            with _lock:
                self._threads.pop(held.connection, None)
            held.connection.close()
            del self._local.held

    def close(self) -> None:
        """Close all of them."""
        with _lock:
            for connection in self._threads:
                connection.close()
            self._threads.clear()
        self._local = threading.local()

    def before_fork(self) -> None:
        """Note which connections are in no thread's hands, or in those of this one, which is in no call of SQLite."""
        me = threading.current_thread()
        self._idle = [
            connection
            for connection, thread in self._threads.items()
            if (thread is me or not thread.is_alive()) and not connection.in_transaction
        ]

    def after_fork(self) -> None:
        """Close what the child of a fork has inherited, and leave what may be in use."""
        for connection in self._idle:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
            del self._threads[connection]
        if self._threads:
            _inherited.setdefault(self._identity, []).extend(self._threads)
        self._idle = []
        self._threads = {}
        self._local = threading.local()


def _before_fork() -> None:
    # Nobody opens or closes a connection during the fork.
    _lock.acquire()
    for connections in list(_all):
        connections.before_fork()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for connections in list(_all):
        connections.after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=lambda: _lock.release(), after_in_child=_after_fork_in_child)
