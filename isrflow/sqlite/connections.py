"""The SQLite connections of this process to a bus file: one for each thread, and none that a fork copied.

The problem: a forked process has its parent's connections, but not the parent's locks on the file. SQLite in the child
believes that it has them, for new connections too. When the parent closes the bus, no process seems to have it open, so
SQLite removes the write-ahead log. The child goes on writing to a deleted file: what it publishes is acknowledged, and
lost.

So a child closes what it inherited, before it does anything else, and opens connections of its own. But it must not
close a connection that a thread of the parent was using at that moment: that could damage the file, or never end. If a
thread was using one, the child leaves all as they are, and may not use these files.

For the same reason ``close`` leaves a connection that another thread is using to that thread. Python crashes if a
connection is closed in the middle of a call.
"""

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isrflow.errors import BusError
from isrflow.sqlite.file_identity import Identity

_lock = threading.RLock()
_all: "weakref.WeakSet[Connections]" = weakref.WeakSet()
# Inherited connections that are left as they are, by file. Python would close a connection that nothing refers to.
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
        self._is_closed = False
        # How many uses of this file each thread is in, by the thread's ident. Only the thread itself writes its number.
        self._uses: dict[int, int] = {}
        with _lock:
            _all.add(self)

    def mine(self) -> Held | None:
        """Return what this thread holds; None if it has no connection yet."""
        held: Held | None = getattr(self._local, "held", None)
        return held

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Pin this thread's connection during the block. Raises ``BusError`` if the bus is closed."""
        me = threading.get_ident()
        self._uses[me] = self._uses.get(me, 0) + 1
        try:
            # After the line above, so that either this thread sees that the bus is closed, or ``close`` sees the use.
            self.check_usable()
            yield
        finally:
            # There are none in the child of a fork, because ``after_fork`` cleared them.
            self._uses[me] = self._uses.get(me, 1) - 1
            if not self._uses[me]:
                del self._uses[me]
                if self._is_closed:
                    self.drop_mine()

    def is_used(self) -> bool:
        """Return whether any thread is using a connection."""
        return bool(self._uses)

    def check_usable(self) -> None:
        """Raise ``BusError`` if this process may not open the file, or has closed it."""
        if self._is_closed:
            raise BusError(f"bus {self._path}: this program has closed it")
        if self._identity in _inherited:
            raise BusError(
                f"bus {self._path}: this process was forked in the middle of a use of the bus, so it cannot use it: "
                "fork before other threads use a bus, or start the process with multiprocessing's 'spawn'"
            )

    def hold(self, held: Held) -> None:
        """Keep this thread's connection. Close the connections of ended threads, because a program may start many."""
        with _lock:
            for connection in [one for one, thread in self._threads.items() if not thread.is_alive()]:
                del self._threads[connection]
                connection.close()
            self._threads[held.connection] = threading.current_thread()
        self._local.held = held

    def drop_mine(self) -> None:
        """Close this thread's connection, if it has one."""
        held = self.mine()
        if held is not None:
            del self._local.held
            self._close_one(held.connection)

    def close(self) -> None:
        """Close all of them, for good. A connection in use is closed by its thread."""
        self._is_closed = True
        for connection, thread in list(self._threads.items()):
            if not (thread.is_alive() and thread.ident in self._uses):
                self._close_one(connection)

    def _close_one(self, connection: sqlite3.Connection) -> None:
        with _lock:
            if self._threads.pop(connection, None) is not None:
                connection.close()

    def after_fork(self, *, may_close: bool) -> None:
        """Close what the child of a fork has inherited, or keep it unused."""
        for connection in self._threads:
            if may_close:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            else:
                _inherited.setdefault(self._identity, []).append(connection)
        self._uses = {}
        self._threads = {}
        self._local = threading.local()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    # As it was at the moment of the fork.
    inherited = list(_all)
    may_close = not any(connections.is_used() for connections in inherited)
    for connections in inherited:
        connections.after_fork(may_close=may_close)


# The lock is held, so that no thread opens or closes a connection during the fork.
os.register_at_fork(
    before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_after_fork_in_child
)
