"""A ZooKeeper in memory, and sessions with it that a gateway uses instead of its own."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from brokers.gateways.zk import znodes
from brokers.gateways.zk.mirror import Create, Delete, Write
from brokers.gateways.zk.session import ZookeeperError
from tests.brokers.zk.decided import ID


class Stat(NamedTuple):
    """What ZooKeeper says of a znode."""

    czxid: int
    version: int


class ZnodeTree:
    """The znodes, each with its text. ``cut`` names the gateways that do not reach it."""

    def __init__(self) -> None:
        self.znodes: dict[str, tuple[bytes, Stat]] = {}
        self.cut: set[int] = set()
        # So that each term ends as soon as it has begun.
        self.refuses_watches = False
        # Who took ``/controller`` with which epoch, and when.
        self.epochs: list[tuple[int, int]] = []
        self.taken_s: list[float] = []
        # What is done before a znode is read, in the thread that reads.
        self.before_read: Callable[[str], object] = lambda path: None
        self._zxid = 1_000
        self._lock = threading.Lock()

    def put(self, path: str, data: bytes) -> int:
        """Write a znode, and return the transaction that made it."""
        with self._lock:
            self._zxid += 1
            former = self.znodes.get(path)
            stat = Stat(self._zxid, 0) if former is None else Stat(former[1].czxid, former[1].version + 1)
            self.znodes[path] = data, stat
            return stat.czxid

    def put_broker(self, number: int, port: int = 9_092) -> int:
        """Register a broker, and return the transaction, which is its epoch."""
        return self.put(f"/brokers/ids/{number}", json.dumps({"endpoints": [f"PLAINTEXT://127.0.0.1:{port}"]}).encode())

    def put_topic(self, name: str, replicas: list[int]) -> None:
        """Make a topic of one partition that the first replica leads."""
        text = {"version": 3, "topic_id": ID, "partitions": {0: replicas}}
        state = {"version": 1, "leader": replicas[0], "leader_epoch": 7, "controller_epoch": 6, "isr": replicas}
        self.put(f"/brokers/topics/{name}", json.dumps(text).encode())
        self.put(f"/brokers/topics/{name}/partitions/0/state", json.dumps(state).encode())

    def session(self, gateway: int) -> Callable[..., "TreeSession"]:
        """Return what makes the sessions of a gateway, in the place of ``Session``."""
        return lambda hosts, timeout_ms, changed, lost: TreeSession(self, gateway)


class TreeSession:
    """A session of a gateway that has no watches."""

    def __init__(self, tree: ZnodeTree, gateway: int) -> None:
        self._tree = tree
        self._gateway = gateway

    def open(self, timeout_ms: int) -> None:
        self._check()

    def close(self) -> None:
        """Nothing is open."""

    def check_cluster(self, cluster_id: str) -> None:
        self._check()

    def take(
        self,
        controller: int,
        gateways: frozenset[int],
        epoch_min: int,
        time_ms: int,
        *,
        adopting: bool = False,
        notes: Callable[[], Sequence[Write]] = list,
    ) -> int:
        self._check()
        self.write(notes())
        epoch = max(self._tree.epochs[-1][1] + 1 if self._tree.epochs else 1, epoch_min)
        self._tree.epochs.append((controller, epoch))
        self._tree.taken_s.append(time.monotonic())
        return epoch

    def write(self, writes: Sequence[Write]) -> None:
        self._check()
        for one in writes:
            match one:
                case Delete():
                    self._tree.znodes.pop(one.path, None)
                case Create(sequence=True):
                    self._tree.put(f"{one.path}{len(self._tree.znodes):010}", one.data)
                case _:
                    self._tree.put(one.path, one.data)

    def read(self, path: str, watch: bool = False) -> tuple[bytes, Any] | None:
        self._tree.before_read(path)
        self._check()
        return self._tree.znodes.get(path)

    def children(self, path: str, watch: bool = False) -> list[str]:
        self._check()
        if watch and self._tree.refuses_watches:
            raise ZookeeperError("no watches")
        below = [one[len(path) + 1 :] for one in list(self._tree.znodes) if one.startswith(f"{path}/")]
        return sorted({one.partition("/")[0] for one in below})

    def remove(self, path: str) -> None:
        self._check()
        self._tree.znodes.pop(path, None)

    def former_controller(self) -> int | None:
        held = self.read(znodes.CONTROLLER)
        return None if held is None else znodes.controller_of(held[0]).brokerid

    def _check(self) -> None:
        if self._gateway in self._tree.cut:
            raise ZookeeperError("ZooKeeper cannot be reached")
