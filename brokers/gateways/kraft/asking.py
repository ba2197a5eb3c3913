"""What a handler of a broker's or an admin's request needs of its gateway, whatever its brokers follow."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from brokers.gateways.kraft.engine_client import EngineClient
from brokers.wire.catalogue import Request
from state.decisions import Answer
from state.event import AdminEvent

T = TypeVar("T")


class ReassignedPartition(Protocol):
    """A partition that may be being reassigned."""

    @property
    def replicas(self) -> Sequence[int]: ...
    @property
    def adding_replicas(self) -> Sequence[int]: ...
    @property
    def removing_replicas(self) -> Sequence[int]: ...


class NamedTopic(Protocol):
    """A topic that the gateway knows, with its partitions by number."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> str: ...
    @property
    def partitions(self) -> Mapping[int, ReassignedPartition]: ...


class Asking(Protocol):
    """A gateway that passes requests on to the engine."""

    @property
    def engine(self) -> EngineClient: ...

    def topics(self) -> Collection[NamedTopic]:
        """Return all topics."""

    def topic(self, topic_id: str) -> NamedTopic | None:
        """Return the topic of an id."""

    def topic_named(self, name: str) -> NamedTopic | None:
        """Return the topic of a name."""

    async def offload(self, size: int, work: Callable[..., T], *given: Any) -> T:
        """Do ``work`` here if it is short, judged by ``size``, and otherwise in another thread."""

    async def ask_as_admin(self, request: Request, events: Sequence[AdminEvent]) -> list[Answer]:
        """Pass an admin's request to the engine, and wait as long as the client waits."""
