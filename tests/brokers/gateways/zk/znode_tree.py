"""A ZooKeeper in memory that several gateways share, each with a client of its own that may be cut off."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import ConnectionLoss

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.many_reads import Operation
from tests.brokers.gateways.zk.decided import ID
from tests.brokers.gateways.zk.zookeeper import Later, Zookeeper, read_later


class ZnodeTree(Zookeeper):
    """The znodes, and what gateways did. ``cut`` names the gateways that do not reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.cut: set[int] = set()
        # So that each term ends as soon as it has begun.
        self.refuses_watches = False
        # Who took ``/controller`` with which epoch, and when.
        self.epochs: list[tuple[int, int]] = []
        self.taken_s: list[float] = []

    def put(self, path: str, data: bytes) -> int:
        """Write a znode, and return the transaction that made it."""
        with self.lock:
            if path in self.znodes:
                return self.set(path, data).czxid
            self.create(path, data, makepath=True)
            return self.znodes[path].czxid

    def put_broker(self, number: int, port: int = 9_092) -> int:
        """Register a broker, and return the transaction, which is its epoch."""
        return self.put(f"/brokers/ids/{number}", json.dumps({"endpoints": [f"PLAINTEXT://127.0.0.1:{port}"]}).encode())

    def put_topic(self, name: str, replicas: list[int]) -> None:
        """Make a topic of one partition that the first replica leads."""
        text = {"version": 3, "topic_id": ID, "partitions": {0: replicas}}
        state = {"version": 1, "leader": replicas[0], "leader_epoch": 7, "controller_epoch": 6, "isr": replicas}
        self.put(f"/brokers/topics/{name}", json.dumps(text).encode())
        self.put(f"/brokers/topics/{name}/partitions/0/state", json.dumps(state).encode())

    def committed(self) -> None:
        held = self.znodes.get(znodes.CONTROLLER_EPOCH)
        epoch = 0 if held is None else znodes.epoch_of(held.data)
        if epoch and (not self.epochs or epoch > self.epochs[-1][1]):
            controller = znodes.controller_of(self.znodes[znodes.CONTROLLER].data).brokerid
            self.epochs.append((controller, epoch))
            self.taken_s.append(time.monotonic())

    def client(self, gateway: int) -> Callable[..., "TreeClient"]:
        """Return what makes the clients of a gateway, in the place of ``ManyReads``."""
        return lambda **options: TreeClient(self, gateway)


class TreeClient:
    """A client of a gateway. What it is asked the ZooKeeper does, unless the gateway is cut off."""

    def __init__(self, tree: ZnodeTree, gateway: int) -> None:
        self._tree = tree
        self._gateway = gateway

    def read_many_async(self, operation: Operation, paths: Sequence[str]) -> Later:
        return read_later(self, operation, paths)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*given: Any, **named: Any) -> Any:
            is_over = name in ("stop", "close")
            if not is_over and self._gateway in self._tree.cut:
                raise ConnectionLoss
            if named.get("watch") is not None and self._tree.refuses_watches:
                raise ConnectionLoss
            return getattr(self._tree, name)(*given, **named)

        return ask
