"""The parts of a gateway of either kind that the handlers of brokers' and admins' requests need."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import structlog

from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError, TooLargeError
from brokers.gateways.shared.event_queue import QueueFullError
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from state.decisions import Answer
from state.event import AdminEvent

# The most records of the metadata log that one request may lead to (``QuorumController.MAX_RECORDS_PER_USER_OP``).
RECORDS_MAX = 10_000
# Kafka's controller answers STALE_BROKER_EPOCH to a broker that is not registered, too.
STALE_BROKER = frozenset({"BROKER_ID_NOT_REGISTERED", "STALE_BROKER_EPOCH"})

logger = structlog.get_logger()

T = TypeVar("T")


class KnownPartition(Protocol):
    """A partition as it was last decided. It may be being reassigned."""

    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def isr(self) -> Sequence[int]: ...
    @property
    def partition_epoch(self) -> int: ...
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
    def partitions(self) -> Mapping[int, KnownPartition]: ...


class Asking(Protocol):
    """A gateway that passes requests on to the engine."""

    @property
    def engine(self) -> EngineClient: ...

    @property
    def brokers_metadata_version(self) -> int:
        """The metadata version of the newest broker. Its release of Kafka decides which settings a topic may have."""

    def topics(self) -> Collection[NamedTopic]:
        """Return all topics."""

    def topic(self, topic_id: str) -> NamedTopic | None:
        """Return the topic of an id."""

    def topic_named(self, name: str) -> NamedTopic | None:
        """Return the topic of a name."""

    def settings_of_all_brokers(self) -> Mapping[str, str]:
        """Return the dynamic settings of all brokers together. Brokers' own files are not included."""

    async def offload(self, size: int, work: Callable[..., T], *given: Any) -> T:
        """Do ``work`` here if ``size`` is small, and otherwise in another thread."""

    async def ask_as_admin(self, request: Request, events: Sequence[AdminEvent]) -> list[Answer]:
        """Pass an admin's request to the engine, and wait as long as the client waits."""


def may_be_registered(body: Values) -> bool:
    """Return whether there can be a broker of this id and epoch. An event with others would be malformed."""
    return bool(body["BrokerId"] >= 0 and body["BrokerEpoch"] >= -1)


def waited_ms(request: Request, longest_ms: int) -> int:
    """Return how long to wait for the engine: as long as the client waits, up to ``longest_ms``."""
    body = request.values
    requested_ms = next((body[name] for name in ("TimeoutMs", "timeoutMs") if name in body), 0)
    return min(requested_ms, longest_ms) if requested_ms > 0 else longest_ms


def text(answer: Answer) -> str | None:
    """Return an answer's message as responses carry it: None for an empty one."""
    return answer.message or None


def error_of(answer: Answer) -> Values:
    """Return the fields of a response that carry an answer's error."""
    return {"ErrorCode": code_of(answer.error), "ErrorMessage": text(answer)}


async def answered(request: Request, handling: Awaitable[Values]) -> Values:
    """Return the response that ``handling`` gives, or a refusal if the engine cannot be asked or does not answer."""
    try:
        return await handling
    except NoAnswerError as error:
        logger.warning("no answer", api=request.name, why=str(error))
        return refusal_of(request, ErrorCode.REQUEST_TIMED_OUT)
    except QueueFullError as error:
        logger.warning("event queue full", api=request.name, why=str(error))
        return refusal_of(request, ErrorCode.REQUEST_TIMED_OUT)
    except TooLargeError as error:
        logger.warning("refused", api=request.name, why=str(error))
        return refusal_of(request, ErrorCode.MESSAGE_TOO_LARGE)
