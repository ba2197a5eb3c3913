"""The channels of a term: one to the present incarnation of each live broker."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.zk.channels.channel import Channel
from brokers.gateways.zk.channels.requests.building import Sender
from brokers.gateways.zk.channels.requests.news import Everything, News
from brokers.gateways.zk.channels.requests.partition_states import PartitionStates
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Settings
from state.decisions import AnyDecision, BrokerDecision, StopReplica


class Channels:
    """The channels by broker. They send while ``published`` is set. A failure in ``guarded`` ends the term."""

    def __init__(
        self,
        view: ClusterView,
        sender: Sender,
        engine: EngineClient,
        settings: Settings,
        published: asyncio.Event,
        guarded: Callable[[Awaitable[None]], Coroutine[Any, Any, None]],
    ) -> None:
        self._view = view
        self._sender = sender
        self._engine = engine
        self._settings = settings
        self._published = published
        self._guarded = guarded
        self._states = PartitionStates(view, sender.controller_epoch, sender.versions)
        self._channels: dict[int, Channel] = {}
        self._sending: dict[int, asyncio.Task[None]] = {}

    def tell(self, event: Sequence[AnyDecision]) -> None:
        """Tell all brokers an event's decisions."""
        news = News(event, self._view)
        for channel in self._channels.values():
            channel.tell(news)

    def ask_again(self, broker: int) -> None:
        """Tell a broker everything again, if it lives."""
        if broker in self._channels:
            self._channels[broker].ask_again()

    def sync(self, orders: Sequence[StopReplica] = ()) -> None:
        """End channels to brokers that are gone. Begin one to each new broker, with everything and ``orders``."""
        live = {held.broker: held for held in self._view.live if held.incarnation.isdigit() and held.listeners}
        for number, channel in list(self._channels.items()):
            known = live.get(number)
            if known is None or known.incarnation != channel.broker.incarnation:
                self._sending.pop(number).cancel()
                del self._channels[number]
            elif known != channel.broker:
                channel.know(known)
        if new := [held for number, held in live.items() if number not in self._channels]:
            self._begin(new, orders)

    def _begin(self, brokers: Iterable[BrokerDecision], orders: Sequence[StopReplica]) -> None:
        everything = Everything(self._view)
        for held in brokers:
            channel = Channel(
                held, self._view, self._states, self._sender, self._engine, self._settings, self._published
            )
            self._channels[held.broker] = channel
            self._sending[held.broker] = asyncio.create_task(self._guarded(channel.run()))
            channel.tell_all(everything, orders)

    def report_now(self) -> None:
        """Report all answers so far to the engine."""
        for channel in self._channels.values():
            channel.report_now()

    async def close(self) -> None:
        """End all channels."""
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
