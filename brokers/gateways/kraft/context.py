"""What the handlers of requests work with."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

import msgspec

from brokers.gateways.kraft.engine_client import EngineClient
from brokers.gateways.kraft.event_queue import Lane
from brokers.gateways.kraft.metadata.image import MetadataImage, TopicState
from brokers.gateways.kraft.probing import Probes
from brokers.gateways.kraft.quorum_view import QuorumView
from brokers.gateways.kraft.read_watch import ReadWatch
from brokers.gateways.kraft.resource_locks import ResourceLocks
from brokers.gateways.kraft.settings import Identity, Settings
from brokers.gateways.kraft.storage import Storage
from brokers.wire.schema import Values
from state.decisions import Answer
from state.event import AdminEvent

# From how many things on, or of a message from how many bytes on, work is done in another thread.
OFFLOAD_ITEMS_MIN = 500
BYTES_PER_ITEM = 50

T = TypeVar("T")


class Context(msgspec.Struct, frozen=True):
    """Hold a gateway's parts."""

    identity: Identity
    settings: Settings
    engine: EngineClient
    quorum_view: QuorumView
    storage: Storage
    locks: ResourceLocks
    executor: Executor
    read_watch: ReadWatch
    probes: Probes

    @property
    def is_cut_off(self) -> bool:
        """Say whether this gateway has lost the bus for so long, one way or the other, that another one may lead."""
        return self.engine.is_cut_off or self.read_watch.is_stalled

    async def offload(self, size: int, work: Callable[..., T], *given: Any) -> T:
        """Do what keeps nobody waiting here, and what takes long, by its ``size``, in another thread."""
        if size < OFFLOAD_ITEMS_MIN:
            return work(*given)
        return await asyncio.get_running_loop().run_in_executor(self.executor, work, *given)

    async def ask_as_admin(self, told: Values, events: Sequence[AdminEvent]) -> list[Answer]:
        """Ask what a request asked for, and wait as long as who asks waits, and no longer than answers may take."""
        longest_ms = self.settings.answer_timeout_ms
        asked_ms = next((told[name] for name in ("TimeoutMs", "timeoutMs") if name in told), 0)
        timeout_ms = min(asked_ms, longest_ms) if asked_ms > 0 else longest_ms
        return await self.engine.ask(*events, lane=Lane.ADMIN, timeout_ms=timeout_ms)

    @property
    def image(self) -> MetadataImage:
        return self.storage.image

    @property
    def endpoints(self) -> list[dict[str, object]]:
        """List the voters as responses tell of nodes."""
        return [{"NodeId": v.voter, "Host": v.host, "Port": v.port} for v in self.identity.voters]

    def topic(self, topic_id: str) -> TopicState | None:
        return self.image.topics.get(topic_id)

    def topic_named(self, name: str) -> TopicState | None:
        topic_id = self.image.topic_ids.get(name)
        return None if topic_id is None else self.image.topics[topic_id]


def text(answer: Answer) -> str | None:
    """Give the message of an answer as responses carry it: None where there is none."""
    return answer.message or None


def config_of(image: MetadataImage, resource_type: int, name: str) -> Mapping[str, str]:
    """Give the settings of a resource as they stand."""
    return image.configs.get((resource_type, name), {})
