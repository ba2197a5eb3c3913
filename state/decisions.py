"""What goes out: one struct a kind of decision, and the canonical order in which they are numbered."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from state.broker import Broker
from state.partition import LeaderRecoveryState, Partition
from state.reason import Reason
from state.registration import Feature, Listener

CONTRACT_VERSION = 1


class Decision(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Hold what every decision has.

    (``seq``, ``index``) is its identity: ``seq`` is the event that caused it, ``index`` its place
    among that event's decisions, given by ``canonical.number``.
    """

    contract_version: int = CONTRACT_VERSION
    seq: int
    index: int = 0
    controller_epoch: int
    time_ms: int
    reason: Reason


class LeaderAndIsr(Decision, frozen=True, kw_only=True, tag="leader_and_isr", gc=False):
    """Who leads a partition and who is in sync; the brokers in ``to`` must act on it."""

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
) -> LeaderAndIsr:
    """Tell a partition as it stands."""
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
    )


class StopReplica(Decision, frozen=True, kw_only=True, tag="stop_replica", gc=False):
    """The brokers in ``to`` stop following, and with ``delete`` remove the log."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    delete: bool
    to: tuple[int, ...]


class TopicDecision(Decision, frozen=True, kw_only=True, tag="topic"):
    """A topic came, is going, or went."""

    topic: str
    topic_id: str
    state: str
    config: dict[str, str]


class BrokerDecision(Decision, frozen=True, kw_only=True, tag="broker"):
    """A broker's registration changed its state.

    ``remaining``, where told, counts the partitions that a broker in controlled shutdown still leads;
    ``log_dirs`` and ``features`` are told where it registered any.
    """

    broker: int
    broker_epoch: int
    incarnation: str
    state: str
    rack: str | None
    listeners: tuple[Listener, ...]
    log_dirs: tuple[str, ...] | UnsetType = UNSET
    features: tuple[Feature, ...] | UnsetType = UNSET
    remaining: int | UnsetType = UNSET


def broker_decision_of(broker: Broker, state: str, **common: Any) -> BrokerDecision:
    """Tell a broker as it is registered, with the ``state`` that it is told to be in."""
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
    )


class HighWatermark(Decision, frozen=True, kw_only=True, tag="high_watermark", gc=False):
    """Records below ``high_watermark`` are on every in-sync replica."""

    topic: str
    partition: int
    leader_epoch: int
    high_watermark: int


class PartitionResult(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What became of one partition of a request that named several."""

    topic: str
    partition: int
    error: str
    message: str


class Answer(Decision, frozen=True, kw_only=True, tag="answer"):
    """The answer to a request: ``error`` is Kafka's name, ``NONE`` when done.

    ``request`` is the kind of event it answers; the optional fields are what that kind asks for.
    ``remaining`` answers ``controlled_shutdown``, ``results`` those that name several partitions; of more than
    ``canonical.RESULTS_MAX`` those refused come first, and ``results_left_out`` counts the others.
    """

    request_id: str | int | None
    request: str
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
    remaining: int | UnsetType = UNSET
    results: tuple[PartitionResult, ...] | UnsetType = UNSET
    producer_id_start: int | UnsetType = UNSET
    producer_id_len: int | UnsetType = UNSET
    quorum_epoch: int | UnsetType = UNSET
    results_left_out: int | UnsetType = UNSET


class ConfigDecision(Decision, frozen=True, kw_only=True, tag="config"):
    """The dynamic settings of an entity as they now stand.

    ``in_force`` are, of the cluster, those that brokers act on, from wherever they came: they go before ``config``.
    """

    entity: str
    name: str | None
    config: dict[str, str]
    in_force: dict[str, str] | UnsetType = UNSET


class Rejected(Decision, frozen=True, kw_only=True, tag="rejected"):
    """An event that could not be understood or obeyed: its text, the field, what was expected.

    ``topic`` and ``partition`` name a partition whose change was withheld.
    """

    raw: str
    field: str
    message: str
    topic: str | UnsetType = UNSET
    partition: int | UnsetType = UNSET


class Imbalance(Decision, frozen=True, kw_only=True, tag="imbalance"):
    """What a balance check counted, where any leader is not the preferred one.

    ``counts`` gives for each preferred broker how many partitions it does not lead, and how many it should.
    """

    counts: dict[int, tuple[int, int]]


class QuorumDecision(Decision, frozen=True, kw_only=True, tag="quorum"):
    """Which gateway leads the metadata quorum, in which start of it and which quorum epoch.

    ``voters`` are the gateways that brokers know, in rising order; from here on the metadata log is written in
    ``metadata_format``, of which the absence means the first.
    """

    voter: int
    incarnation: str
    voters: tuple[int, ...]
    quorum_epoch: int
    metadata_format: int | UnsetType = UNSET


class ProducerIds(Decision, frozen=True, kw_only=True, tag="producer_ids"):
    """A broker got the block of producer ids that ends before ``next_producer_id`` (KIP-730)."""

    broker: int
    broker_epoch: int
    next_producer_id: int


class NoOp(Decision, frozen=True, kw_only=True, tag="no_op"):
    """Nothing but that the controller decides: an idle metadata log gets a record by it (KIP-835).

    Its time is later than that of any before in the same quorum epoch.
    """


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
)

KIND_RANK: dict[str, int] = {kind.__struct_config__.tag: rank for rank, kind in enumerate(AnyDecision.__args__)}

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(AnyDecision).decode
