"""Two controllers of the same simulated brokers: the engine behind a gateway, and a stock broker of Kafka 3.9.1."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from brokers.gateways.zk.gateway import Gateway
from brokers.gateways.zk.settings import Identity, Settings
from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from tests.support.gateway_in_process import POLICY
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S

CONTROLLER = 100
CLUSTER_ID = "cluster-of-tests-00000"
# Long, because a busy machine may give this process no time for a while.
SETTINGS = Settings(zookeeper_session_timeout_ms=10_000, zookeeper_connection_timeout_ms=120_000)


@contextmanager
def stock_controller(zookeeper: str, folder: Path) -> Iterator[int]:
    """Run a stock broker in a ZooKeeper that has no other yet, so that it is the controller, and yield its port."""
    [port] = free_ports(1)
    overrides = {
        "auto.leader.rebalance.enable": "false",
        "zookeeper.session.timeout.ms": "30000",
        "auto.create.topics.enable": "false",
    }
    spec = NodeSpec(
        node_id=CONTROLLER, roles=("broker",), voters=(), port=port, zookeeper=zookeeper, overrides=overrides
    )
    cluster = KafkaCluster.create(folder, (spec,), CLUSTER_ID)
    try:
        cluster.up()
        yield port
    finally:
        cluster.kill()


class Led(NamedTuple):
    """A gateway's port, and the bus on which the rules decide."""

    port: int
    bus: EmbeddedBus


@contextmanager
def gateway(zookeeper: str, folder: Path) -> Iterator[Led]:
    """Run the rules and a gateway in threads."""
    [port] = free_ports(1)
    engine, bus = RulesEngine(), EmbeddedBus(folder / "bus.db")
    engine.start(folder / "bus.db", **POLICY)
    identity = Identity(
        gateway=CONTROLLER,
        voters=(Voter(CONTROLLER, LOOPBACK, port),),
        zookeeper=zookeeper,
        cluster_id=CLUSTER_ID,
    )
    leading = Gateway(identity, SETTINGS, bus)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(leading.run(),), name="gateway", daemon=True)
    thread.start()
    try:
        yield Led(port, bus)
    finally:
        loop.call_soon_threadsafe(leading.stop)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
        loop.close()
        engine.stop()
        bus.close()
