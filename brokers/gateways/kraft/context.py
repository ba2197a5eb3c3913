"""The parts of a gateway that the handlers of requests use."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from brokers.gateways.kraft.following.quorum_view import QuorumView
from brokers.gateways.kraft.log.storage import Storage
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.image import ALL_BROKERS, BROKER_RESOURCE, MetadataImage, TopicState
from brokers.gateways.kraft.mutation_quotas import MutationQuotas
from brokers.gateways.kraft.probing import Probes
from brokers.gateways.kraft.resource_locks import ResourceLocks
from brokers.gateways.kraft.security.access_control import AccessControl
from brokers.gateways.kraft.security.settings import Security
from brokers.gateways.kraft.settings import Identity, Settings
from brokers.gateways.shared.apis.asking import waited_ms
from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.shared.heard_brokers import HeardBrokers
from brokers.gateways.shared.read_watch import ReadWatch
from brokers.voters import Voter
from brokers.wire.errors import ErrorCode
from state.decisions import Answer
from state.entity import VOTERS_ID
from state.event import AdminEvent
from state.features import METADATA_VERSION, USUAL_METADATA_VERSION
from state.voter_endpoints import endpoints_of

# Work on this many items or more runs in another thread. A message counts as one item per ``BYTES_PER_ITEM`` bytes.
OFFLOAD_ITEMS_MIN = 500
BYTES_PER_ITEM = 50
_VOTERS_CACHED = 64

T = TypeVar("T")


class NotLeadingError(Exception):
    """This gateway does not lead in the quorum epoch of a request, so nothing of it was done."""


class Context(msgspec.Struct, frozen=True):
    """A gateway's parts."""

    identity: Identity
    settings: Settings
    engine: EngineClient
    quorum_view: QuorumView
    storage: Storage
    locks: ResourceLocks
    executor: Executor
    read_watch: ReadWatch
    probes: Probes
    heard_brokers: HeardBrokers
    access: AccessControl
    mutation_quotas: MutationQuotas
    # None if the listener does not authenticate clients.
    security: Security | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether the bus or the disk has not served this gateway for so long that another one may lead."""
        return self.engine.is_cut_off or self.read_watch.is_stalled

    async def offload(self, size: int, work: Callable[..., T], *given: Any) -> T:
        """Do ``work`` here if ``size`` is small, and otherwise in another thread."""
        if size < OFFLOAD_ITEMS_MIN:
            return work(*given)
        return await asyncio.get_running_loop().run_in_executor(self.executor, work, *given)

    async def ask_as_admin(self, request: Request, events: Sequence[AdminEvent]) -> list[Answer]:
        """Pass an admin's request to the engine, in the name of the caller.

        The events carry the quorum epoch in which the request came, because they may follow from what was known then.
        The engine decides them in no other epoch, and a later leader has read all decisions of this one.
        Raises ``NotLeadingError`` if the engine refuses all of them for their epoch.
        """
        quorum_epoch = UNSET if request.quorum_epoch is None else request.quorum_epoch
        answers = await self.engine.ask(
            *(replace(one, principal=request.principal or UNSET, quorum_epoch=quorum_epoch) for one in events),
            lane=Lane.ADMIN,
            timeout_ms=waited_ms(request, self.settings.answer_timeout_ms),
        )
        if answers and all(answer.error == ErrorCode.NOT_CONTROLLER.name for answer in answers):
            raise NotLeadingError
        return answers

    @property
    def image(self) -> MetadataImage:
        return self.storage.image

    @property
    def brokers_metadata_version(self) -> int:
        """The newest metadata version that a broker supports; without brokers, that of the log.

        A level is raised after brokers are upgraded, and brokers that are newer than the level must be able to read
        the metadata too.
        """
        registered = (feature for broker in self.image.brokers.values() for feature in broker.features)
        supported = [high for name, _, high in registered if name == METADATA_VERSION]
        return max([self.image.features.get(METADATA_VERSION, USUAL_METADATA_VERSION), *supported])

    @property
    def logged_voters(self) -> Mapping[str, str]:
        """The voters in the metadata log: their endpoints by their ids. There are none at kraft.version 0."""
        held = self.image.entities.get(VOTERS_ID)
        return {} if held is None else held.values

    @property
    def voters(self) -> Sequence[Voter]:
        """The voters with their endpoints: those of the metadata log, or else of controller.quorum.voters."""
        logged, listener = self.logged_voters, self.settings.listener_names[0]
        return [_placed(int(voter), place, listener) for voter, place in logged.items()] or self.identity.voters

    @property
    def endpoints(self) -> list[dict[str, object]]:
        """The voters as responses list nodes."""
        return [{"NodeId": v.voter, "Host": v.host, "Port": v.port} for v in self.voters]

    def topics(self) -> Collection[TopicState]:
        """Return all topics."""
        return list(self.image.topics.values())

    def topic(self, topic_id: str) -> TopicState | None:
        held: TopicState | None = self.image.topics.get(topic_id)
        return held

    def topic_named(self, name: str) -> TopicState | None:
        topic_id = self.image.topic_ids.get(name)
        return None if topic_id is None else self.image.topics[topic_id]

    def settings_of_all_brokers(self) -> Mapping[str, str]:
        return config_of(self.image, BROKER_RESOURCE, ALL_BROKERS)


# Cached, because each answer to a fetch names the voters.
@lru_cache(maxsize=_VOTERS_CACHED)
def _placed(voter: int, endpoints: str, listener: str) -> Voter:
    """Return a voter at its endpoint for ``listener``, or at its first one."""
    known = endpoints_of(endpoints)
    place = next((one for one in known if one.listener == listener), known[0])
    return Voter(voter, place.host, place.port)


def config_of(image: MetadataImage, resource_type: int, name: str) -> Mapping[str, str]:
    """Return the present settings of a resource."""
    held: Mapping[str, str] = image.configs.get((resource_type, name), {})
    return held
