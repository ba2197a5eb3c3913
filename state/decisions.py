"""What goes out: a struct for each kind of decision, and the rank of each kind in the canonical order."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from state.acl import Acl, AclWithId
from state.broker import Broker
from state.decision import CONTRACT_VERSION as CONTRACT_VERSION
from state.decision import Decision as Decision
from state.divergence import Divergence as Divergence
from state.divergence import Violation as Violation
from state.partition import LeaderRecoveryState, Partition
from state.reason import Reason
from state.registration import Feature, Listener


class LeaderAndIsr(Decision, frozen=True, kw_only=True, tag="leader_and_isr", gc=False):
    """A partition's leader and ISR. The brokers in ``to`` must act on it."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader_recovery_state: str
    is_new: bool
    unclean: bool
    to: tuple[int, ...]
    # If this is an election: why each replica before the leader, in order of assignment, was not elected.
    passed_over: dict[int, str] | UnsetType = UNSET
    # The log directories of the replicas whose brokers have just said where they are.
    directories: dict[int, str] | UnsetType = UNSET
    # The eligible leader replicas, and the last known leader. Set if either is not empty.
    elr: tuple[int, ...] | UnsetType = UNSET
    last_known_elr: tuple[int, ...] | UnsetType = UNSET
    # The last written epoch and the end of each log, if the leader was elected for having the most complete one.
    compared_logs: dict[int, tuple[int, int]] | UnsetType = UNSET


_RECOVERY_NAMES = {int(member): member.name for member in LeaderRecoveryState}


def leader_and_isr_of(
    topic: str,
    topic_id: str,
    partition: Partition,
    *,
    seq: int,
    controller_epoch: int,
    time_ms: int,
    reason: Reason,
    to: tuple[int, ...],
    is_new: bool = False,
    unclean: bool = False,
    passed_over: dict[int, str] | UnsetType = UNSET,
    directories: dict[int, str] | UnsetType = UNSET,
) -> LeaderAndIsr:
    """Make the decision that shows a partition as it stands."""
    return LeaderAndIsr(
        seq=seq,
        controller_epoch=controller_epoch,
        time_ms=time_ms,
        reason=reason,
        topic=topic,
        topic_id=topic_id,
        partition=partition.partition,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        partition_epoch=partition.partition_epoch,
        replicas=partition.replicas,
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
        leader_recovery_state=_RECOVERY_NAMES[partition.leader_recovery_state],
        is_new=is_new,
        unclean=unclean,
        to=to,
        passed_over=passed_over,
        directories=directories,
        elr=partition.elr if partition.has_eligible else UNSET,
        last_known_elr=partition.last_known_elr if partition.has_eligible else UNSET,
    )


class StopReplica(Decision, frozen=True, kw_only=True, tag="stop_replica", gc=False):
    """An order to the brokers in ``to`` to stop following, and with ``delete`` to remove the log."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    delete: bool
    to: tuple[int, ...]


class TopicDecision(Decision, frozen=True, kw_only=True, tag="topic"):
    """A topic that was created, is being deleted, or is gone."""

    topic: str
    topic_id: str
    state: str
    config: dict[str, str]


class BrokerDecision(Decision, frozen=True, kw_only=True, tag="broker"):
    """A broker's registration and state, after a change."""

    broker: int
    broker_epoch: int
    incarnation: str
    state: str
    rack: str | None
    listeners: tuple[Listener, ...]
    # Set if the broker registered any.
    log_dirs: tuple[str, ...] | UnsetType = UNSET
    features: tuple[Feature, ...] | UnsetType = UNSET
    # How many partitions a broker in controlled shutdown still leads.
    remaining: int | UnsetType = UNSET
    # Directories that it had and cannot read. Set if there are any.
    offline_log_dirs: tuple[str, ...] | UnsetType = UNSET
    # Set if any of its directories are to get no new replicas (KIP-1066).
    cordoned_log_dirs: tuple[str, ...] | UnsetType = UNSET


def broker_decision_of(broker: Broker, state: str, **common: Any) -> BrokerDecision:
    """Make the decision that shows a broker's registration and ``state``."""
    return BrokerDecision(
        **common,
        broker=broker.broker,
        broker_epoch=broker.broker_epoch,
        incarnation=broker.incarnation,
        state=state,
        rack=broker.rack,
        listeners=broker.listeners,
        log_dirs=broker.log_dirs or UNSET,
        features=broker.features or UNSET,
        offline_log_dirs=broker.offline_log_dirs or UNSET,
        cordoned_log_dirs=broker.cordoned_log_dirs or UNSET,
    )


class HighWatermark(Decision, frozen=True, kw_only=True, tag="high_watermark", gc=False):
    """A partition's high watermark: all records below it are on every in-sync replica."""

    topic: str
    partition: int
    leader_epoch: int
    high_watermark: int


class PartitionResult(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What became of one partition of a request about several."""

    topic: str
    partition: int
    error: str
    message: str


class Answer(Decision, frozen=True, kw_only=True, tag="answer"):
    """The answer to a request. Each kind of request has its own of the optional fields."""

    request_id: str | int | None
    # The kind of event that it answers.
    request: str
    # Kafka's name of the error; NONE if the request is done.
    error: str
    message: str
    broker: int | UnsetType = UNSET
    broker_epoch: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    topic_id: str | UnsetType = UNSET
    partition: int | UnsetType = UNSET
    leader: int | UnsetType = UNSET
    leader_epoch: int | UnsetType = UNSET
    isr: tuple[int, ...] | UnsetType = UNSET
    partition_epoch: int | UnsetType = UNSET
    assignment: dict[str, tuple[int, ...]] | UnsetType = UNSET
    # Answers controlled_shutdown: how many partitions the broker still leads.
    remaining: int | UnsetType = UNSET
    # Answers a request about several partitions: at most canonical.RESULTS_MAX of them, refusals before others.
    results: tuple[PartitionResult, ...] | UnsetType = UNSET
    producer_id_start: int | UnsetType = UNSET
    producer_id_len: int | UnsetType = UNSET
    quorum_epoch: int | UnsetType = UNSET
    results_left_out: int | UnsetType = UNSET
    # Answers delete_acls: the deleted ACLs.
    acls: tuple[Acl, ...] | UnsetType = UNSET


class ConfigDecision(Decision, frozen=True, kw_only=True, tag="config"):
    """The dynamic settings of an entity as they now stand."""

    entity: str
    name: str | None
    config: dict[str, str]
    # For the cluster: the settings that brokers act on, from any source. They take precedence over ``config``.
    in_force: dict[str, str] | UnsetType = UNSET
    # For brokers: the names of settings that were set to the value that they had. Set if there are any.
    set_again: tuple[str, ...] | UnsetType = UNSET


class Rejected(Decision, frozen=True, kw_only=True, tag="rejected"):
    """An event that could not be understood or obeyed, or a change that was withheld."""

    # The event's text.
    raw: str
    field: str
    # What was expected of the field.
    message: str
    # The partition whose change was withheld.
    topic: str | UnsetType = UNSET
    partition: int | UnsetType = UNSET


class Imbalance(Decision, frozen=True, kw_only=True, tag="imbalance"):
    """What a balance check counted, if any leader is not the preferred one."""

    # By broker, of the partitions that prefer it as leader: how many it does not lead, and how many there are.
    counts: dict[int, tuple[int, int]]


class QuorumDecision(Decision, frozen=True, kw_only=True, tag="quorum"):
    """Which gateway leads the metadata quorum."""

    voter: int
    incarnation: str
    # The gateways that brokers know, in rising order.
    voters: tuple[int, ...]
    quorum_epoch: int


class ProducerIds(Decision, frozen=True, kw_only=True, tag="producer_ids"):
    """A block of producer ids for a broker, which ends before ``next_producer_id`` (KIP-730)."""

    broker: int
    broker_epoch: int
    next_producer_id: int


class NoOp(Decision, frozen=True, kw_only=True, tag="no_op"):
    """A decision that changes nothing. It gives an idle metadata log a record (KIP-835).

    Its time is later than that of any earlier ``no_op`` in the same quorum epoch.
    """


class AclsDecision(Decision, frozen=True, kw_only=True, tag="acls"):
    """ACLs that were created or deleted."""

    created: tuple[AclWithId, ...] = ()
    deleted: tuple[AclWithId, ...] = ()


class EntityDecision(Decision, frozen=True, kw_only=True, tag="entity"):
    """A metadata entity as it now stands."""

    entity_type: str
    names: dict[str, str | None]
    # All values. Without any the entity is gone.
    values: dict[str, str]


class LevelDecision(Decision, frozen=True, kw_only=True, tag="level"):
    """The level from here on: which decisions, state and records may be written."""

    level: int


AnyDecision = (
    LeaderAndIsr
    | StopReplica
    | TopicDecision
    | BrokerDecision
    | HighWatermark
    | Answer
    | ConfigDecision
    | Rejected
    | Imbalance
    | QuorumDecision
    | ProducerIds
    | NoOp
    | AclsDecision
    | EntityDecision
    | LevelDecision
    | Divergence
    | Violation
)

KIND_RANK: dict[str, int] = {kind.__struct_config__.tag: rank for rank, kind in enumerate(AnyDecision.__args__)}

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(AnyDecision).decode
