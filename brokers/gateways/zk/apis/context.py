"""The parts of a gateway that handlers of requests use (``brokers.gateways.shared.apis.asking.Asking``)."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from brokers.gateways.shared.apis.asking import waited_ms
from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.zk.apis.proxy import Proxy
from brokers.gateways.zk.cluster_view import ClusterView, TopicView
from brokers.gateways.zk.settings import Identity, Settings
from brokers.wire.catalogue import Request
from state.decisions import Answer
from state.event import AdminEvent
from state.features import METADATA_VERSIONS

T = TypeVar("T")


class Context(msgspec.Struct, frozen=True):
    """A gateway's parts. ``leads`` returns whether brokers obey it.

    All producer ids below ``first_producer_id`` are taken. ``note_producer_ids`` writes into ZooKeeper that all ids
    below its argument are taken. It raises ``ZookeeperError`` or ``ZnodeError``.
    """

    identity: Identity
    settings: Settings
    engine: EngineClient
    view: ClusterView
    proxy: Proxy
    leads: Callable[[], bool]
    first_producer_id: Callable[[], int]
    note_producer_ids: Callable[[int], Awaitable[None]]

    @property
    def brokers_metadata_version(self) -> int:
        # Only brokers of this release are led in ZooKeeper mode.
        return METADATA_VERSIONS["3.9"]

    def topics(self) -> Collection[TopicView]:
        return self.view.topics.values()

    def topic(self, topic_id: str) -> TopicView | None:
        return self.view.topic_of_id(topic_id)

    def topic_named(self, name: str) -> TopicView | None:
        return self.view.topics.get(name)

    def settings_of_all_brokers(self) -> Mapping[str, str]:
        return self.view.decided_settings()

    async def offload(self, size: int, work: Callable[..., T], *given: Any) -> T:
        return work(*given)

    async def ask_as_admin(self, request: Request, events: Sequence[AdminEvent]) -> list[Answer]:
        """Pass an admin's request to the engine."""
        timeout_ms = waited_ms(request, self.settings.answer_timeout_ms)
        return await self.engine.ask(*events, lane=Lane.ADMIN, timeout_ms=timeout_ms)
