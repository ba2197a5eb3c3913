"""ZooKeeper's znodes in memory: what writes lead to, and what a session reads of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from brokers.gateways.zk import znodes
from brokers.gateways.zk.session import Session
from brokers.gateways.zk.transactions import Create, Delete, Set, Write


class Stat(NamedTuple):
    """What kazoo says of a znode. Transactions are not counted here."""

    version: int
    mzxid: int = 0


class Tree:
    """The znodes by path, with the text and the version of each. Those that every ZooKeeper has are not shown."""

    def __init__(self) -> None:
        self.znodes: dict[str, tuple[bytes, int]] = {}
        self._notes = 0

    def make(self, writes: Sequence[Write]) -> None:
        """Do what ZooKeeper does, and refuse what it refuses."""
        for one in writes:
            parent = one.path.rpartition("/")[0]
            match one:
                case Create(sequence=True):
                    self._notes += 1
                case Create():
                    assert one.path not in self.znodes
                    assert parent in self.znodes or parent in ("", znodes.TOPICS, znodes.TOPIC_CONFIGS)
                    self.znodes[one.path] = (one.data, 0)
                case Set():
                    assert one.version in (-1, self.znodes[one.path][1])
                    self.znodes[one.path] = (one.data, self.znodes[one.path][1] + 1)
                case Delete():
                    assert not [path for path in self.znodes if path.startswith(f"{one.path}/")]
                    del self.znodes[one.path]

    def read(self, path: str, watch: bool = False) -> tuple[bytes, Stat] | None:
        found = self.znodes.get(path)
        return None if found is None else (found[0], Stat(found[1]))

    def children(self, path: str, watch: bool = False) -> list[str]:
        below = [one.removeprefix(f"{path}/") for one in self.znodes if one.startswith(f"{path}/")]
        return sorted(name for name in below if "/" not in name)

    def read_each(self, paths: Iterable[str]) -> Iterator[tuple[bytes, Stat] | None]:
        return map(self.read, paths)

    def children_of_each(self, paths: Iterable[str]) -> Iterator[list[str]]:
        return map(self.children, paths)

    @property
    def session(self) -> Session:
        """The session that reads this tree."""
        return cast(Session, self)
