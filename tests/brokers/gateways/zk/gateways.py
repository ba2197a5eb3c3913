"""Gateways to a ZooKeeper in memory, and the rules, in one process."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.zk.client import connection
from brokers.gateways.zk.gateway import Gateway
from brokers.gateways.zk.settings import Identity, Settings
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from bus.image import read_image
from state.event import Event
from state.event_text import decode
from state.events import GatewayHeartbeat
from tests.brokers.gateways.zk.znode_tree import ZnodeTree
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S

CLUSTER_ID = "cluster-of-tests-00000"


class Gateways:
    """Gateways (100, 101, …) that run in threads, each on a connection of its own to the bus."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch, count: int, **settings: Any) -> None:
        self.tree = ZnodeTree()
        self.engine = RulesEngine()
        self.bus = EmbeddedBus(place / "bus.db")
        self.buses: dict[int, EmbeddedBus] = {}
        self._place = place / "bus.db"
        self._patch = patch
        self._settings = Settings(**settings)
        self._voters = tuple(Voter(100 + number, "127.0.0.1", port) for number, port in enumerate(free_ports(count)))
        self._running: dict[int, tuple[Gateway, asyncio.AbstractEventLoop, threading.Thread]] = {}
        patch.setattr(connection, "ManyReads", lambda **options: self.tree.client(_gateway_here())(**options))

    def identity(self, number: int) -> Identity:
        return Identity(gateway=number, voters=self._voters, zookeeper="none:1", cluster_id=CLUSTER_ID)

    def start(self, number: int) -> None:
        identity = self.identity(number)
        bus = self.buses[number] = EmbeddedBus(self._place)
        gateway, loop = Gateway(identity, self._settings, bus), asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(gateway.run(),), name=f"gateway-{number}")
        thread.daemon = True
        self._running[number] = gateway, loop, thread
        thread.start()

    def stop(self) -> None:
        for gateway, loop, _ in self._running.values():
            loop.call_soon_threadsafe(gateway.stop)
        for number, (_, loop, thread) in self._running.items():
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
            loop.close()
            self.buses[number].close()

    @property
    def named(self) -> int:
        """The gateway that the engine names."""
        return read_image(self.bus.image()).cluster.quorum.voter

    @property
    def quorum_epoch(self) -> int:
        return read_image(self.bus.image()).cluster.quorum.quorum_epoch

    def leads(self, number: int) -> bool:
        return self._running[number][0].leads

    def serves(self, number: int) -> bool:
        """Return whether a gateway knows who leads, so that brokers may find it."""
        return self._running[number][0].measures().is_serving

    def state_of(self, broker: int) -> str | None:
        """Return the state in which the engine sees a broker; None if it does not know it."""
        held = read_image(self.bus.image()).cluster.brokers.get(broker)
        return None if held is None else held.state.name

    def beats(self, number: int) -> int:
        """Count the heartbeats of a gateway."""
        return len([one for one in self.events(GatewayHeartbeat) if getattr(one, "gateway", None) == number])

    def silence(self, number: int) -> int:
        """Return how many heartbeats a gateway sent, once it sends no more; 0 while it does."""
        before = self.beats(number)
        time.sleep(20 * self._settings.gateway_heartbeat_interval_ms / 1000)
        return before if before == self.beats(number) else 0

    def events(self, *kinds: type[Event]) -> list[Event]:
        """Read all events of some kinds."""
        decoded = (decode(entry.raw) for entry in self.bus.read(0, self.bus.last_seq()))
        return [one for one in decoded if isinstance(one, kinds)]


def _gateway_here() -> int:
    """Return the gateway whose thread this is; 0 for any other thread."""
    number = threading.current_thread().name.removeprefix("gateway-")
    return int(number) if number.isdecimal() else 0


@contextmanager
def gateways(
    place: Path, patch: pytest.MonkeyPatch, count: int, policy: dict[str, object], **settings: Any
) -> Iterator[Gateways]:
    """Run the rules under ``policy``; the test starts the gateways."""
    found = Gateways(place, patch, count, **settings)
    found.engine.start(place / "bus.db", **policy)
    try:
        yield found
    finally:
        found.stop()
        found.engine.stop()
        found.bus.close()
