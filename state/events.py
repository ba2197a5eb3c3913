"""What comes in: one struct a kind of event, each field with the limits that the engine holds it to.

An event crosses the edge as a JSON object (contract version 1), which ``event_text`` reads. Unknown
fields are ignored.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from state.event import AdminEvent as AdminEvent
from state.event import EngineEvent
from state.event import Event as Event
from state.gateway_events import GatewayHeartbeat as GatewayHeartbeat
from state.gateway_events import GatewayStarted as GatewayStarted
from state.ids import EPOCH_DURING_DELETE
from state.limits import (
    Assignment,
    BrokerEpoch,
    Config,
    Epoch,
    Id,
    Ids,
    Name,
    Offset,
    RulesVersion,
    Scalar,
    Text,
    Texts,
    TimeMs,
)
from state.registration import Feature, Listener
from state.rules import FIRST_RULES


class TopicPartition(msgspec.Struct, frozen=True, order=True):
    """Name one partition."""

    topic: Name
    partition: Id


class BrokerRegister(Event, frozen=True, kw_only=True, tag="broker_register"):
    """A broker starts; its broker_epoch will be this event's seq (KIP-631).

    One ``behind_gateway`` speaks through the gateway that leads the quorum: its silence counts while
    that one was heard.
    """

    broker: Id
    incarnation: Text
    rack: Text | None = None
    listeners: Annotated[tuple[Listener, ...], Meta(max_length=64)] = ()
    log_dirs: Texts = ()
    previous_broker_epoch: BrokerEpoch = -1
    features: Annotated[tuple[Feature, ...], Meta(max_length=64)] = ()
    behind_gateway: bool = False


class BrokerHeartbeat(Event, frozen=True, kw_only=True, tag="broker_heartbeat"):
    """A broker lives, and asks to be fenced, unfenced or let go (KIP-631)."""

    broker: Id
    broker_epoch: BrokerEpoch
    want_fence: bool
    want_shutdown: bool
    caught_up: bool | None = None
    offline_log_dirs: Texts = ()


class BrokerConnectionLost(Event, frozen=True, kw_only=True, tag="broker_connection_lost"):
    """An edge lost its connection to a broker: a hint, the session stays the authority."""

    broker: Id
    broker_epoch: BrokerEpoch


class BrokerUnregister(AdminEvent, frozen=True, kw_only=True, tag="broker_unregister"):
    """An operator removes a broker that will not come back."""

    broker: Id


class ControlledShutdown(Event, frozen=True, kw_only=True, tag="controlled_shutdown"):
    """A broker about to stop asks for its leaderships to be moved."""

    broker: Id
    broker_epoch: BrokerEpoch


class OfReplica(Event, frozen=True, kw_only=True):
    """Hold which replica speaks; with ``topic_id`` it speaks of that topic, and of no other that has the name."""

    topic: Name
    partition: Id
    broker: Id
    topic_id: Text | None = None


class AlterIsr(OfReplica, frozen=True, kw_only=True, tag="alter_isr"):
    """A partition's leader asks for another ISR (KIP-497); ``isr_epochs`` as in KIP-903."""

    broker_epoch: BrokerEpoch
    leader_epoch: Epoch
    partition_epoch: Epoch
    isr: Ids
    isr_epochs: Annotated[tuple[BrokerEpoch, ...], Meta(max_length=1_000)] | None = None
    leader_recovery_state: Literal["RECOVERED", "RECOVERING", 0, 1] | None = None


class LogEndOffset(OfReplica, frozen=True, kw_only=True, tag="log_end_offset"):
    """A replica tells how far its log reaches, in the leader epoch that it follows."""

    leader_epoch: Epoch
    log_end_offset: Offset
    log_start_offset: Offset | None = None
    broker_epoch: BrokerEpoch | None = None


class ReplicaReport(OfReplica, frozen=True, kw_only=True, tag="replica_report"):
    """A broker tells what became of a decision on one of its replicas."""

    broker_epoch: BrokerEpoch
    leader_epoch: Annotated[int, Meta(ge=EPOCH_DURING_DELETE, le=2**31 - 1)]
    outcome: Literal["leader", "follower", "stopped", "deleted", "offline", "error"]
    error: Text | None = None


class CreateTopic(AdminEvent, frozen=True, kw_only=True, tag="create_topic"):
    """An admin creates a topic, by size or by explicit assignment.

    Sizes are plain integers here: a size out of range is the answer's error, not an unreadable event.
    """

    topic: Text
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: Assignment | None = None
    config: Config = {}
    validate_only: bool = False


class DeleteTopic(AdminEvent, frozen=True, kw_only=True, tag="delete_topic"):
    """An admin deletes a topic; with ``topic_id`` only the one that has it."""

    topic: Name
    topic_id: Text | None = None


class CreatePartitions(AdminEvent, frozen=True, kw_only=True, tag="create_partitions"):
    """An admin adds partitions, up to ``total``; ``assignment`` lists the replicas of the new ones."""

    topic: Name
    total: int
    assignment: Annotated[tuple[Ids, ...], Meta(max_length=1_000_000)] | None = None
    validate_only: bool = False


class AlterReassignment(AdminEvent, frozen=True, kw_only=True, tag="alter_reassignment"):
    """An admin moves a partition to ``replicas``, or cancels with null (KIP-455)."""

    topic: Name
    partition: Id
    replicas: Ids | None


class ElectLeaders(AdminEvent, frozen=True, kw_only=True, tag="elect_leaders"):
    """An admin asks for an election on some partitions, or on all with null (KIP-460)."""

    election_type: Literal["preferred", "unclean"]
    partitions: Annotated[tuple[TopicPartition, ...], Meta(max_length=1_000_000)] | None


class AlterConfig(AdminEvent, frozen=True, kw_only=True, tag="alter_config"):
    """An admin sets (or with null removes) dynamic settings; ``name`` is the topic's or broker's."""

    entity: Literal["cluster", "topic", "broker"]
    name: Text | None = None
    config: Config
    validate_only: bool = False


class ControllerStarted(Event, frozen=True, kw_only=True, tag="controller_started"):
    """A job takes over with the next controller epoch; ``settings`` and ``rules_version`` are those it decides by.

    Up to ``decided_seq`` others had decided by then.
    """

    controller_id: Text | int
    controller_epoch: Epoch
    settings: dict[str, Scalar] | None = None
    rules_version: RulesVersion = FIRST_RULES
    decided_seq: Offset | None = None


class LeaderImbalance(EngineEvent, frozen=True, kw_only=True, tag="leader_imbalance"):
    """The engine tells all its shards what the tick ``checked_seq`` counted over the whole cluster.

    ``counts`` gives for each preferred broker how many partitions it does not lead, and how many it should.
    """

    controller_epoch: Epoch | None = None

    checked_seq: Offset
    counts: Annotated[dict[Id, tuple[Offset, Offset]], Meta(max_length=1_000_000)]


class AllocateProducerIds(Event, frozen=True, kw_only=True, tag="allocate_producer_ids"):
    """A broker asks for a block of producer ids (KIP-730)."""

    broker: Id
    broker_epoch: BrokerEpoch


class SessionsExtended(EngineEvent, frozen=True, kw_only=True, tag="sessions_extended"):
    """The engine was held up for ``by_ms``: what it did not hear meanwhile was not silence."""

    by_ms: TimeMs


class Tick(EngineEvent, frozen=True, kw_only=True, tag="tick"):
    """Time passes: sessions, balance and watermarks are looked at now."""


AnyEvent = (
    BrokerRegister
    | BrokerHeartbeat
    | BrokerConnectionLost
    | BrokerUnregister
    | ControlledShutdown
    | AlterIsr
    | LogEndOffset
    | ReplicaReport
    | CreateTopic
    | DeleteTopic
    | CreatePartitions
    | AlterReassignment
    | ElectLeaders
    | AlterConfig
    | ControllerStarted
    | LeaderImbalance
    | GatewayStarted
    | GatewayHeartbeat
    | AllocateProducerIds
    | SessionsExtended
    | Tick
)


class Malformed(msgspec.Struct, frozen=True, kw_only=True):
    """Hold what could not be understood: which field, and what was expected.

    ``request`` is the kind that it called itself, as far as that could be read.
    """

    field: str
    message: str
    request_id: str | int | None = None
    request: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Say that the log went on without an event for this shard; never on the bus."""


class Logged(msgspec.Struct, frozen=True):
    """Hold an event in its place in the one total order.

    ``clock_ms`` is the greatest ``time_ms`` up to here of the events that came along, on whichever
    shard they belong to; ``raw`` is the text that was published. ``entered_ms`` is the bus's time when it came, and
    ``is_claim`` says whether the bus knows it as a job's claim; None is not known. ``found_ms`` is when a job that
    claimed last found it undecided.
    """

    seq: int
    clock_ms: int
    event: AnyEvent | Malformed | Progress
    raw: bytes
    entered_ms: int | None = None
    is_claim: bool | None = None
    found_ms: int | None = None
