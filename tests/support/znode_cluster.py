"""A cluster of Kafka 3.9 as ZooKeeper shows it, without any broker."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.gateway import Gateway
from brokers.gateways.zk.moves.adoption import adopt
from brokers.gateways.zk.settings import Identity, Settings
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from tests.support.waiting import TIMEOUT_S, wait_until

# A busy machine may give this process no time for a while.
PATIENT = Settings(zookeeper_session_timeout_ms=10_000, zookeeper_connection_timeout_ms=120_000)
CLUSTER_ID = "cluster-of-tests-00000"
IDS = {name: f"{name * 21}Q" for name in "tuvw"}


class ZnodeCluster:
    """A cluster in ZooKeeper under a root of its own. It has brokers 1 and 2, and broker 1 is the controller."""

    def __init__(self, address: str, root: str, bus_path: Path) -> None:
        self.root = f"{address}/{root}"
        self.bus = EmbeddedBus(bus_path)
        self.identity = Identity(
            gateway=100,
            voters=tuple(Voter(100 + number, "127.0.0.1", port) for number, port in enumerate(free_ports(2))),
            zookeeper=self.root,
            cluster_id=CLUSTER_ID,
        )
        outer = KazooClient(hosts=address)
        outer.start(timeout=TIMEOUT_S)
        outer.ensure_path(f"/{root}")
        outer.stop()
        outer.close()
        self.client = KazooClient(hosts=self.root)
        self.client.start(timeout=TIMEOUT_S)
        self.put("/cluster/id", {"version": "1", "id": CLUSTER_ID})
        self.put("/controller", {"version": 2, "brokerid": 1, "timestamp": "1", "kraftControllerEpoch": -1})
        self.put("/controller_epoch", 6)
        for number in (1, 2):
            self.put_broker(number, 9_000 + number)

    def put(self, path: str, value: object, version: int = 0) -> None:
        """Make a znode, and write it ``version`` times more."""
        data = json.dumps(value).encode()
        self.client.create(path, data, makepath=True)
        for _ in range(version):
            self.client.set(path, data)

    def put_broker(self, number: int, port: int) -> None:
        """Register a broker at ``port``. Nothing has to listen there."""
        protocols = {"PLAINTEXT": "PLAINTEXT"}
        found = {"endpoints": [f"PLAINTEXT://127.0.0.1:{port}"], "listener_security_protocol_map": protocols}
        self.put(f"/brokers/ids/{number}", found)

    def put_topic(self, name: str, partitions: dict[int, list[int]], *, version: int = 12, **more: object) -> None:
        """Make a topic whose partitions are all led in epoch 7 by their first replicas."""
        topic = {"version": 3, "topic_id": IDS[name], "partitions": partitions} | more
        self.put(f"/brokers/topics/{name}", topic)
        self.put(f"/config/topics/{name}", {"version": 1, "config": {"retention.ms": "1000"}})
        for number, replicas in partitions.items():
            state = {"version": 1, "leader": replicas[0], "leader_epoch": 7, "controller_epoch": 6, "isr": replicas}
            self.put(f"/brokers/topics/{name}/partitions/{number}/state", state, version)

    def write_isr(self, path: str, *isr: int) -> None:
        """Write a partition's ISR as its leader does: without isrflow's own field, which the leader does not know."""
        state = {name: value for name, value in self.get(path).items() if name != "isrflow_partition_epoch"}
        self.client.set(path, json.dumps(state | {"isr": isr}).encode())

    def get(self, path: str) -> Any:
        return json.loads(self.client.get(path)[0])

    def is_there(self, path: str) -> bool:
        return self.client.exists(path) is not None

    def adopt(self, settings: Settings = PATIENT) -> None:
        adopt(self.identity, settings, self.bus)

    def lead(
        self, until: Callable[[], bool], begin: Callable[[], Awaitable[None]], settings: Settings = PATIENT
    ) -> None:
        """Run ``begin``, and then a gateway until ``until`` returns true."""

        async def lead() -> None:
            await begin()
            gateway = Gateway(self.identity, settings, self.bus)
            running = asyncio.create_task(gateway.run())
            async with asyncio.timeout(TIMEOUT_S):
                while not until():
                    await asyncio.sleep(0.05)
            gateway.stop()
            await running

        asyncio.run(lead())

    def session(self) -> Session:
        session = Session(self.root, PATIENT.zookeeper_session_timeout_ms, lambda path: None, lambda why: None)
        session.open(PATIENT.zookeeper_connection_timeout_ms)
        return session

    def decided(self) -> dict[str, tuple[int, int, tuple[int, ...], int]]:
        return {
            f"{held['topic']}-{held['partition']}": (
                held["leader"],
                held["leader_epoch"],
                tuple(held["isr"]),
                held["partition_epoch"],
            )
            for held in view_of_image(self.bus.image())["partitions"]
        }

    def ask(self, kind: str, **fields: Any) -> None:
        """Publish an event, and wait until it is decided."""
        seq = self.bus.publish([json.dumps({"kind": kind, "time_ms": 1} | fields).encode()])
        wait_until(lambda: self.bus.decided_seq() >= seq, f"{kind} to be decided")

    def close(self) -> None:
        self.client.stop()
        self.client.close()
        self.bus.close()
