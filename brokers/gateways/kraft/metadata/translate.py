"""From the decisions on one event to the records of the metadata log. This is the only way into the log.

The problem: brokers of Kafka follow a metadata log that a controller quorum writes once and for all. Here the truth is
the decision log on the bus, several gateways serve it, and each of them may lose its disk.

The insight: if the metadata log is a pure function of the decisions, gateways need no agreement among themselves. Each
writes the same bytes at the same offsets, and a log that is lost can be written again. So ``translate`` looks only at
the decisions and the image that its own earlier records give; it reads no clock and no state of the engine:

    decisions of seq 7 -> translate(image) -> records of seq 7 -> replay into image -> decisions of seq 8 -> ...

All records of one event go into the log together, so a broker never sees a fenced broker without the elections that
follow from it. A record comes after the records that it refers to, so the order is: removed topics, brokers, created
topics, settings, partitions, producer ids, ACLs, metadata entities, and last the empty records. The quorum's voters
come before all of them, because they are control records, which are never in a batch with others.

Before the quorum has its first leader there is no epoch to write in. Decisions until then only change the image. The
records of that image become the first ones of the log, after the features.

Brokers hold the bytes that a decision became, so its translation cannot be corrected later. A new behaviour needs
decisions that say something new.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import UNSET

from brokers.engine.alike_decisions import AlikeDecisions, GivenDecision
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.entities import acl_records, entity_records
from brokers.gateways.kraft.metadata.image import NO_QUORUM, MetadataImage
from brokers.gateways.kraft.metadata.partitions import (
    PartitionTranslation,
    StaleDecisionError,
    by_topic,
    changed_directories,
)
from brokers.gateways.kraft.metadata.registrations import broker_records
from brokers.gateways.kraft.metadata.sliced_map import SlicedMap
from brokers.gateways.kraft.metadata.snapshot import control_records_of, producer_ids, records_of
from brokers.gateways.kraft.metadata.topics import config_records, created_topics, removed_topics
from brokers.gateways.kraft.metadata.voters import voter_records
from brokers.wire.metadata.record_frame import Record, encode_record
from state.decisions import (
    AclsDecision,
    AnyDecision,
    BrokerDecision,
    ConfigDecision,
    EntityDecision,
    LeaderAndIsr,
    NoOp,
    ProducerIds,
    QuorumDecision,
    TopicDecision,
)
from state.entity import VOTERS, VOTERS_ID
from state.features import METADATA_VERSION, USUAL_METADATA_VERSION, first_levels
from state.ids import NO_LEADER

NO_OP = Record("NoOpRecord", 0, {})

_D = TypeVar("_D", bound=AnyDecision)


class LeaderChange(NamedTuple):
    """The voter that leads from here on."""

    voter: int
    voters: tuple[int, ...]


class Entry(NamedTuple):
    """The addition of one event to the log: a new leader, the quorum's voters, records, or all of them in this order.

    Everything is written in ``quorum_epoch`` with the time ``time_ms``, and brokers see the records all at once. Each
    of ``records`` is given as the bytes of its frame.
    """

    seq: int
    time_ms: int
    quorum_epoch: int
    leader_change: LeaderChange | None
    voters: tuple[Record, ...]
    records: tuple[bytes, ...]


class Translated(NamedTuple):
    """The image after an event, and its addition to the log, if there is one."""

    image: MetadataImage
    entry: Entry | None


def translate(image: MetadataImage, decisions: Sequence[GivenDecision]) -> Translated:
    """Translate all decisions of one seq, in their order; there must be at least one.

    The same image and decisions give the same entry. Replaying the entry into ``image`` gives the returned image, so an
    image can always be restored from the log.

    Raises ``StaleDecisionError`` for decisions older than those in the image.
    """
    draft = MetadataDraft(image)
    entry = entry_of(draft, decisions)
    return Translated(draft.image(), entry)


def entry_of(draft: MetadataDraft, decisions: Sequence[GivenDecision]) -> Entry | None:
    """Do as ``translate`` does, in a draft that may be used for the next event too."""
    first = decisions[0]
    assert decisions[-1].seq == first.seq, "decisions of one seq"
    had_quorum, by_kind = draft.quorum_epoch != NO_QUORUM, _ByKind(decisions)
    voters = _replayed_voters(draft, by_kind)
    records = _replayed(draft, by_kind)
    leader_change = _leader_change(draft, by_kind)
    if draft.quorum_epoch == NO_QUORUM:
        return None
    if not had_quorum:
        chosen = draft.features.get(METADATA_VERSION, USUAL_METADATA_VERSION)
        draft.features = SlicedMap(first_levels(chosen)).update(draft.features)
        records = list(records_of(draft.image()))
        voters = control_records_of(draft.image())
    if leader_change is None and not records and not voters:
        return None
    return Entry(first.seq, first.time_ms, draft.quorum_epoch, leader_change, tuple(voters), tuple(records))


class _ByKind:
    """Decisions by their kind, each kind in its order."""

    def __init__(self, decisions: Iterable[GivenDecision]) -> None:
        self._held: defaultdict[type, list[Any]] = defaultdict(list)
        for one in decisions:
            self._held[one.kind if isinstance(one, AlikeDecisions) else type(one)].append(one)

    def of(self, kind: type[_D]) -> list[_D]:
        return self._held.get(kind, [])


def _replayed_voters(draft: MetadataDraft, decisions: _ByKind) -> list[Record]:
    """Write the control records of the quorum's voters, and apply them."""
    written: list[Record] = []
    for entity in decisions.of(EntityDecision):
        if entity.entity_type == VOTERS:
            held = draft.entities.get(VOTERS_ID)
            for record in voter_records(held.values if held else {}, entity.values):
                draft.replay(record)
                written.append(record)
    return written


def _replayed(draft: MetadataDraft, decisions: _ByKind) -> list[bytes]:
    """Write the records in order, each from the image that the records before it give."""
    written: list[bytes] = []

    def say(records: Iterable[Record]) -> None:
        for record in list(records):
            draft.replay(record)
            written.append(encode_record(*record))

    topics, partitions = decisions.of(TopicDecision), list(by_topic(decisions.of(LeaderAndIsr)))
    say(removed_topics(draft, topics, partitions))
    for broker in decisions.of(BrokerDecision):
        former = draft.brokers.get(broker.broker)
        say(broker_records(draft, broker))
        present = draft.brokers.get(broker.broker)
        # A broker with several directories reports where its replicas are, and those in a lost one stay there.
        reports_places = broker.offline_log_dirs is not UNSET
        if present is not None and not reports_places and (former is None or former.log_dirs != present.log_dirs):
            written += changed_directories(draft, broker.broker, is_new=former is None)
    say(created_topics(draft, topics))
    for config in decisions.of(ConfigDecision):
        say(config_records(draft, config))
    translation = PartitionTranslation(draft)
    for decided in partitions:
        written += translation.records(decided)
    for ids in decisions.of(ProducerIds):
        say([producer_ids(ids.broker, ids.broker_epoch, ids.next_producer_id)])
    for acls in decisions.of(AclsDecision):
        say(acl_records(draft, acls))
    for entity in decisions.of(EntityDecision):
        if entity.entity_type != VOTERS:
            say(entity_records(draft, entity))
    say(NO_OP for _ in decisions.of(NoOp))
    return written


def _leader_change(draft: MetadataDraft, decisions: _ByKind) -> LeaderChange | None:
    for decision in decisions.of(QuorumDecision):
        if decision.voter == NO_LEADER:
            continue
        if decision.quorum_epoch <= draft.quorum_epoch:
            raise StaleDecisionError(
                f"decision {decision.seq} begins quorum epoch {decision.quorum_epoch} after {draft.quorum_epoch}"
            )
        draft.quorum_epoch = decision.quorum_epoch
        return LeaderChange(decision.voter, decision.voters)
    return None
