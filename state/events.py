"""What comes in: a struct for each kind of event, and limits for each field.

An event is a JSON object on the bus (contract version 1), which ``event_text`` reads. Unknown fields are ignored.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from state.adoption_events import AdoptTopic as AdoptTopic
from state.broker_events import BrokerConnectionLost as BrokerConnectionLost
from state.broker_events import BrokerHeartbeat as BrokerHeartbeat
from state.broker_events import BrokerRegister as BrokerRegister
from state.broker_events import BrokerUnregister as BrokerUnregister
from state.broker_events import ControlledShutdown as ControlledShutdown
from state.directory_events import AssignReplicasToDirs as AssignReplicasToDirs
from state.entity_events import AlterEntity as AlterEntity
from state.entity_events import CreateAcls as CreateAcls
from state.entity_events import DeleteAcls as DeleteAcls
from state.event import AdminEvent as AdminEvent
from state.event import EngineEvent
from state.event import Event as Event
from state.event import OfReplica as OfReplica
from state.gateway_events import GatewayHeartbeat as GatewayHeartbeat
from state.gateway_events import GatewayStarted as GatewayStarted
from state.level import FIRST_LEVEL
from state.level_events import RaiseLevel as RaiseLevel
from state.limits import (
    Assignment,
    BrokerEpoch,
    Config,
    Epoch,
    Id,
    Ids,
    Level,
    Name,
    Offset,
    Scalar,
    Text,
    TimeMs,
)
from state.observed_events import Observed as Observed
from state.topic_events import AlterIsrs as AlterIsrs
from state.topic_events import LogEndOffsets as LogEndOffsets
from state.topic_events import ReplicaLog as ReplicaLog
from state.topic_events import ReplicaReport as ReplicaReport
from state.topic_events import ReplicaReports as ReplicaReports
from state.written_events import IsrWritten as IsrWritten


class TopicPartition(msgspec.Struct, frozen=True, order=True):
    """The name of one partition."""

    topic: Name
    partition: Id


class AlterIsr(OfReplica, frozen=True, kw_only=True, tag="alter_isr"):
    """A partition's leader asks for another ISR (KIP-497)."""

    broker_epoch: BrokerEpoch
    leader_epoch: Epoch
    partition_epoch: Epoch
    isr: Ids
    # The broker epoch of each member (KIP-903).
    isr_epochs: Annotated[tuple[BrokerEpoch, ...], Meta(max_length=1_000)] | None = None
    leader_recovery_state: Literal["RECOVERED", "RECOVERING", 0, 1] | None = None


class LogEndOffset(OfReplica, frozen=True, kw_only=True, tag="log_end_offset"):
    """A replica reports where its log ends, in the leader epoch that it follows."""

    leader_epoch: Epoch
    log_end_offset: Offset
    log_start_offset: Offset | None = None
    broker_epoch: BrokerEpoch | None = None


class CreateTopic(AdminEvent, frozen=True, kw_only=True, tag="create_topic"):
    """An admin creates a topic, by size or by an explicit assignment.

    Sizes are plain integers here, because a size out of range does not make an event malformed. It is an error in the
    answer.
    """

    topic: Text
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: Assignment | None = None
    config: Config = {}
    validate_only: bool = False


class DeleteTopic(AdminEvent, frozen=True, kw_only=True, tag="delete_topic"):
    """An admin deletes a topic."""

    topic: Name
    # If given, only the topic of this id is deleted.
    topic_id: Text | None = None


class CreatePartitions(AdminEvent, frozen=True, kw_only=True, tag="create_partitions"):
    """An admin adds partitions to a topic."""

    topic: Name
    # How many partitions the topic will have.
    total: int
    # The replicas of each new partition.
    assignment: Annotated[tuple[Ids, ...], Meta(max_length=1_000_000)] | None = None
    validate_only: bool = False


class AlterReassignment(AdminEvent, frozen=True, kw_only=True, tag="alter_reassignment"):
    """An admin moves a partition to ``replicas``, or with null cancels a move (KIP-455)."""

    topic: Name
    partition: Id
    replicas: Ids | None


class ElectLeaders(AdminEvent, frozen=True, kw_only=True, tag="elect_leaders"):
    """An admin asks for elections in some partitions, or with null in all (KIP-460)."""

    election_type: Literal["preferred", "unclean"]
    partitions: Annotated[tuple[TopicPartition, ...], Meta(max_length=1_000_000)] | None


class AlterConfig(AdminEvent, frozen=True, kw_only=True, tag="alter_config"):
    """An admin sets dynamic settings."""

    entity: Literal["cluster", "topic", "broker"]
    # The topic's name or the broker's id.
    name: Text | None = None
    # A null value removes the setting.
    config: Config
    validate_only: bool = False


class ControllerStarted(Event, frozen=True, kw_only=True, tag="controller_started"):
    """A job takes over with the next controller epoch: its claim."""

    controller_id: Text | int
    controller_epoch: Epoch
    # The job decides by these settings. None: no engine made the claim, and every event moves the clock.
    settings: dict[str, Scalar] | None = None
    # The last event that earlier jobs decided.
    decided_seq: Offset | None = None
    # The highest level that the job supports.
    level: Level = FIRST_LEVEL


class LeaderImbalance(EngineEvent, frozen=True, kw_only=True, tag="leader_imbalance"):
    """The engine tells all its shards what a balance check counted over the whole cluster."""

    # The tick that counted.
    checked_seq: Offset
    # By broker, of the partitions that prefer it as leader: how many it does not lead, and how many there are.
    counts: Annotated[dict[Id, tuple[Offset, Offset]], Meta(max_length=1_000_000)]


class AllocateProducerIds(Event, frozen=True, kw_only=True, tag="allocate_producer_ids"):
    """A broker asks for a block of producer ids (KIP-730)."""

    broker: Id
    broker_epoch: BrokerEpoch
    # The controller that led before the engine handed out all ids below.
    first_id_min: Offset = 0


class SessionsExtended(EngineEvent, frozen=True, kw_only=True, tag="sessions_extended"):
    """The engine was held up for ``by_ms``. It heard no broker meanwhile, so that time does not count as silence."""

    by_ms: TimeMs


class Tick(EngineEvent, frozen=True, kw_only=True, tag="tick"):
    """Time passes. What is due now is decided."""

    # If given, all later events before this tick were undecided when it came.
    decided_seq: Offset | UnsetType = UNSET


AnyEvent = (
    BrokerRegister
    | BrokerHeartbeat
    | BrokerConnectionLost
    | BrokerUnregister
    | ControlledShutdown
    | AlterIsr
    | IsrWritten
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
    | CreateAcls
    | DeleteAcls
    | AdoptTopic
    | AlterEntity
    | AssignReplicasToDirs
    | AlterIsrs
    | LogEndOffsets
    | ReplicaReports
    | RaiseLevel
    | Observed
    | ReplicaLog
)

# The events that only the engine may publish.
ENGINE_EVENTS = (ControllerStarted, LeaderImbalance, SessionsExtended, Tick)


class Malformed(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is not an event."""

    # The wrong field; empty if the whole text is wrong.
    field: str
    message: str
    request_id: str | int | None = None
    # The kind of event that the text calls itself, if that can be read.
    request: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The event log went on without an event for this shard. Never on the bus."""


class Logged(msgspec.Struct, frozen=True):
    """An event in its place in the one total order."""

    seq: int
    # The greatest time_ms of all shards' events up to here: the clock where no engine has claimed.
    clock_ms: int
    event: AnyEvent | Malformed | Progress
    # The text that was published.
    raw: bytes
    # The bus's time at which the event came; None if it is not known.
    entered_ms: int | None = None
    # Whether the bus knows the event as a job's claim; None if it cannot tell.
    is_claim: bool | None = None
    # When a claim last found the event undecided; None if no claim did.
    found_ms: int | None = None

    @property
    def is_by_hand(self) -> bool:
        """Whether no bus kept the event, as in a log that was written by hand."""
        return self.entered_ms is None
