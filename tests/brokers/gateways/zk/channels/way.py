"""A channel to one broker, whose end is a ``Door``."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.zk.channels.channel import Channel
from brokers.gateways.zk.channels.requests.news import News
from brokers.gateways.zk.channels.requests.partition_states import PartitionStates
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Settings
from bus.embedded import EmbeddedBus
from state.decisions import AnyDecision
from state.event_text import decode
from state.events import ReplicaReports
from state.registration import Listener
from tests.brokers.gateways.zk.channels.door import Door
from tests.brokers.gateways.zk.decided import SENDER, broker
from tests.support.waiting import TIMEOUT_S

SETTINGS = Settings(retry_backoff_ms=10, controller_socket_timeout_ms=30_000)


class Way:
    """A channel to a door, the events that it leads to, and the view that it tells."""

    def __init__(self, channel: Channel, view: ClusterView, published: asyncio.Event, bus: EmbeddedBus) -> None:
        self.channel = channel
        self.published = published
        self._view = view
        self._bus = bus

    def hear(self, *decisions: AnyDecision) -> None:
        for decision in decisions:
            self._view.apply(decision)
        self.channel.tell(News(decisions, self._view))

    def reports(self) -> list[tuple[int, str]]:
        events = [decode(entry.raw) for entry in self._bus.read(0, self._bus.last_seq())]
        topics = [topic for one in events if isinstance(one, ReplicaReports) for topic in one.topics]
        return [(row.partition, row.outcome) for topic in topics for row in topic.partitions]


@asynccontextmanager
async def way_to(door: Door, place: Path) -> AsyncIterator[Way]:
    server = await asyncio.start_server(door.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    known = replace(broker(1), listeners=(Listener("PLAINTEXT", "127.0.0.1", port),))
    view, published, bus = ClusterView(), asyncio.Event(), EmbeddedBus(place / "bus.db")
    view.apply(known)
    engine = EngineClient(bus, "i", SETTINGS)
    publishing = asyncio.create_task(engine.run())
    try:
        states = PartitionStates(view, SENDER.controller_epoch, SENDER.versions)
        yield Way(Channel(known, view, states, SENDER, engine, SETTINGS, published), view, published, bus)
    finally:
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        engine.close()
        server.close()
        bus.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.01)


def run(work: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(work, TIMEOUT_S))


async def cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
