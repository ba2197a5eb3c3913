"""A ZooKeeper in memory, and the client of it that a session gets: what is read, written, refused and undone.

Watches fire only where a test says so, so a gateway finds changes when it looks.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
)
from kazoo.protocol.serialization import GetData

from brokers.gateways.zk.client.many_reads import Operation

P = ParamSpec("P")
T = TypeVar("T")


class Znode(NamedTuple):
    """A znode: the transactions that made it, that wrote it last, and that last made or removed one below it."""

    data: bytes
    version: int
    czxid: int
    mzxid: int
    pzxid: int


class Changed(NamedTuple):
    """What a watch is told."""

    path: str | None


class Written(NamedTuple):
    """A part of a transaction, which has the ``path`` that kazoo's has."""

    path: str
    make: Callable[[], object]


class Later:
    """An answer to come."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made

    def get(self, timeout: float | None = None) -> Any:
        return self._made()


def read_later(client: Any, operation: Operation, paths: Sequence[str]) -> Later:
    """Read znodes by a client's single reads, once the answer is waited for."""
    read = client.get if operation is GetData else client.get_children

    def result(path: str) -> Any:
        try:
            return read(path)
        except NoNodeError as error:
            return error

    return Later(lambda: [result(path) for path in paths])


def _atomic(method: Callable[Concatenate["Zookeeper", P], T]) -> Callable[Concatenate["Zookeeper", P], T]:
    """Let a method see, and change, no half of a transaction: another thread may be making or undoing one."""

    @functools.wraps(method)
    def locked(zookeeper: "Zookeeper", /, *given: P.args, **named: P.kwargs) -> T:
        with zookeeper.lock:
            return method(zookeeper, *given, **named)

    return locked


class Zookeeper:
    """The znodes by path. It stands for ``ManyReads``: each session that is opened gets this same one."""

    def __init__(self) -> None:
        self.znodes: dict[str, Znode] = {}
        # The watches on a znode itself, by its path.
        self.watches: dict[str, list[Callable[[object], None]]] = {}
        # Called with each path before it is read.
        self.before_read: Callable[[str], None] = lambda path: None
        # Held for a whole transaction, and for each single call.
        self.lock = threading.RLock()
        self._count = 0

    def __call__(self, **options: Any) -> "Zookeeper":
        return self

    def start(self, timeout: float) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def add_listener(self, listener: object) -> None:
        """Do nothing, because a session never ends."""

    def ensure_path(self, path: str) -> None:
        parts = path.split("/")
        for count in range(2, len(parts) + 1):
            if (above := "/".join(parts[:count])) not in self.znodes:
                self.create(above, b"")

    @_atomic
    def create(self, path: str, data: bytes = b"", sequence: bool = False, makepath: bool = False) -> str:
        if makepath:
            self.ensure_path(path.rpartition("/")[0])
        self._count += 1
        name = f"{path}{self._count:010}" if sequence else path
        parent = name.rpartition("/")[0]
        if parent and parent not in self.znodes:
            raise NoNodeError
        if name in self.znodes:
            raise NodeExistsError
        self._changed_below(parent)
        self.znodes[name] = Znode(data, 0, self._count, self._count, self._count)
        return name

    def _changed_below(self, path: str) -> None:
        if path in self.znodes:
            self.znodes[path] = self.znodes[path]._replace(pzxid=self._count)

    @_atomic
    def set(self, path: str, data: bytes, version: int = -1) -> Znode:
        self.check(path, version)
        self._count += 1
        held = self.znodes[path]
        self.znodes[path] = held._replace(data=data, version=held.version + 1, mzxid=self._count)
        return self.znodes[path]

    def check(self, path: str, version: int) -> None:
        if path not in self.znodes:
            raise NoNodeError
        if version not in (-1, self.znodes[path].version):
            raise BadVersionError

    @_atomic
    def delete(self, path: str) -> None:
        self.check(path, -1)
        if self.get_children(path):
            raise NotEmptyError
        del self.znodes[path]
        self._count += 1
        self._changed_below(path.rpartition("/")[0])

    def get(self, path: str) -> tuple[bytes, Znode]:
        self.before_read(path)
        return self._held(path)

    @_atomic
    def _held(self, path: str) -> tuple[bytes, Znode]:
        self.check(path, -1)
        return self.znodes[path].data, self.znodes[path]

    @_atomic
    def exists(self, path: str, watch: Callable[[object], None] | None = None) -> Znode | None:
        if watch is not None:
            self.watches.setdefault(path, []).append(watch)
        return self.znodes.get(path)

    def fire(self, path: str) -> None:
        """Tell those who watch a znode that it has changed."""
        for watch in self.watches.pop(path, []):
            watch(Changed(path))

    @_atomic
    def get_children(self, path: str, watch: object = None) -> list[str]:
        self.check(path, -1)
        below = [one.removeprefix(f"{path}/") for one in list(self.znodes) if one.startswith(f"{path}/")]
        return [name for name in below if "/" not in name]

    def get_async(self, path: str) -> Later:
        return Later(lambda: self.get(path))

    def get_children_async(self, path: str) -> Later:
        return Later(lambda: self.get_children(path))

    def read_many_async(self, operation: Operation, paths: Sequence[str]) -> Later:
        return read_later(self, operation, paths)

    def transaction(self) -> "Transaction":
        return Transaction(self)

    def committed(self) -> None:
        """Called after each transaction that was made."""


class Transaction:
    """Operations that are all made, or none of them."""

    def __init__(self, zookeeper: Zookeeper) -> None:
        self._zookeeper = zookeeper
        self.operations: list[Written] = []

    def create(self, path: str, data: bytes, sequence: bool = False) -> None:
        self.operations.append(Written(path, lambda: self._zookeeper.create(path, data, sequence)))

    def set_data(self, path: str, data: bytes, version: int = -1) -> None:
        self.operations.append(Written(path, lambda: self._zookeeper.set(path, data, version)))

    def delete(self, path: str) -> None:
        self.operations.append(Written(path, lambda: self._zookeeper.delete(path)))

    def check(self, path: str, version: int) -> None:
        self.operations.append(Written(path, lambda: self._zookeeper.check(path, version)))

    def commit(self) -> list[object]:
        with self._zookeeper.lock:
            return self._made()

    def _made(self) -> list[object]:
        before = dict(self._zookeeper.znodes)
        results: list[object] = []
        for one in self.operations:
            try:
                results.append(one.make())
            except KazooException as error:
                self._zookeeper.znodes = before
                return [error if other is one else RolledBackError() for other in self.operations]
        self._zookeeper.committed()
        return results
