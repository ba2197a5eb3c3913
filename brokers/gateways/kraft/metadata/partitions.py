"""Translate decisions about partitions into metadata records.

One event may change most partitions of a cluster, so this works on rows of plain values, topic by topic, and turns a
row into the bytes of its record directly.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from brokers.engine.alike_decisions import AlikeDecisions
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.partition_bytes import change_record, id_bytes, partition_record
from brokers.gateways.kraft.metadata.partition_table import Ids, PartitionState
from brokers.gateways.kraft.metadata.uuids import uuid_of
from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER
from state.log_directory import MIGRATING
from state.partition import LeaderRecoveryState

_RECOVERY = {member.name: member.value for member in LeaderRecoveryState}

# Leader, recovery state, ISR, replicas, adding and removing replicas, the log directories of some replicas, eligible
# replicas, and the last known leader.
Values = tuple[int, int, Ids, Ids, Ids, Ids, Mapping[int, str] | UnsetType, Ids, Ids]
# A partition's number, leader epoch and partition epoch, and its other values, which rows may share.
Row = tuple[int, int, int, Values]


class StaleDecisionError(Exception):
    """A decision is older than one before it. The decision log never has that order."""


class DecidedPartitions(NamedTuple):
    """The decisions on one event about partitions of one topic, in order."""

    seq: int
    topic: str
    topic_id: str
    rows: Sequence[Row]


def by_topic(decisions: Iterable[LeaderAndIsr | AlikeDecisions]) -> Iterator[DecidedPartitions]:
    """Divide the decisions on one event by topic, in their order. A topic may come repeatedly."""
    for one in decisions:
        if isinstance(one, LeaderAndIsr):
            row = (one.partition, one.leader_epoch, one.partition_epoch, _values(one))
            yield DecidedPartitions(one.seq, one.topic, one.topic_id, [row])
            continue
        rows, before = _rows(one), one.topics[0].first
        for topic, topic_id, first, end in one.topics:
            yield DecidedPartitions(one.seq, topic, topic_id, rows[first - before : end - before])


def _rows(decided: AlikeDecisions) -> list[Row]:
    """Return the rows of all topics. Rows of the same text and replicas share their values."""
    of_text: dict[int, Values] = {}
    shared: dict[tuple[int, Ids], Values] = {}

    def found(place: int, replicas: Ids) -> Values:
        pattern = decided.patterns[place]
        values = of_text.get(place)
        if values is None:
            values = of_text[place] = _values(cast(LeaderAndIsr, pattern.decision))
        if pattern.of_places:
            values = _on(values, replicas)
        shared[place, replicas] = values
        return values

    return [
        (number, leader_epoch, partition_epoch, shared.get((place, replicas)) or found(place, replicas))
        for number, place, leader_epoch, partition_epoch, replicas in decided.rows
    ]


def _values(decision: LeaderAndIsr) -> Values:
    return (
        decision.leader,
        _RECOVERY[decision.leader_recovery_state],
        decision.isr,
        decision.replicas,
        decision.adding_replicas,
        decision.removing_replicas,
        decision.directories,
        decision.elr or (),
        decision.last_known_elr or (),
    )


def _on(values: Values, replicas: Ids) -> Values:
    """Return values with ids in place of places in the assignment."""
    leader, recovery, isr, assigned, adding, removing, directories, elr, last_known_elr = values
    if directories is not UNSET:
        directories = {replicas[place]: directory for place, directory in directories.items()}
    return (
        leader if leader == NO_LEADER else replicas[leader],
        recovery,
        _ids(isr, replicas),
        # The places of all replicas are in order.
        replicas[: len(assigned)],
        adding and _ids(adding, replicas),
        removing and _ids(removing, replicas),
        directories,
        elr and _ids(elr, replicas),
        last_known_elr and _ids(last_known_elr, replicas),
    )


def _ids(places: Ids, replicas: Ids) -> Ids:
    return tuple([replicas[place] for place in places])


class _FirstDirectories(dict[int, str]):
    """The log directories of new replicas, by broker. Each is found when a partition needs it."""

    def __init__(self, draft: MetadataDraft) -> None:
        self._draft = draft

    def __missing__(self, broker: int) -> str:
        directory = self[broker] = _directory(self._draft, broker, MIGRATING)
        return directory


class PartitionTranslation:
    """The translation of what one event decided about partitions.

    The registrations of brokers must not change during it.
    """

    def __init__(self, draft: MetadataDraft) -> None:
        self._draft = draft
        self._has_eligible = draft.knows_eligible
        # Lists that are equal within an event are held only once in the image.
        self._same: dict[Ids, Ids] = {}
        self._first = _FirstDirectories(draft)

    def records(self, decided: DecidedPartitions) -> list[bytes]:
        """Apply what was decided to the draft, and return the records of what changed.

        The record of a new partition has all of it. A topic that is not in the image is being deleted, and its
        partitions are already gone.

        Raises ``StaleDecisionError``.
        """
        if decided.topic_id not in self._draft.topics:
            return []
        topic_id, partitions = id_bytes(decided.topic_id), self._draft.opened(decided.topic_id)
        written: list[bytes] = []
        for row in decided.rows:
            number, leader_epoch, partition_epoch, values = row
            leader, recovery, isr, replicas, adding, removing, dirs, elr, last_known_elr = values
            held = partitions.get(number)
            if held is not None and held.replicas == replicas:
                directories, replicas = held.directories, held.replicas
            else:
                former = {} if held is None else dict(zip(held.replicas, held.directories, strict=True))
                directories = tuple([former.get(replica) or self._first[replica] for replica in replicas])
                replicas = self._same.setdefault(replicas, replicas)
            if dirs is not UNSET:
                directories = _assigned(replicas, directories, dirs)
            wanted = PartitionState(
                replicas,
                directories,
                self._same.setdefault(isr, isr),
                removing,
                adding,
                leader,
                recovery,
                leader_epoch,
                partition_epoch,
                *((elr, last_known_elr) if self._has_eligible else ()),
            )
            if held != wanted:
                written.append(_record(decided, topic_id, number, held, wanted))
                partitions.set(number, wanted)
        return written


def _record(
    decided: DecidedPartitions, topic_id: bytes, number: int, held: PartitionState | None, wanted: PartitionState
) -> bytes:
    """Write what changed.

    A change record does not carry the epochs: brokers count them up (``partition_after``). If that would give other
    epochs than the decision's, the whole partition is written.
    """
    if held is None:
        return partition_record(topic_id, number, wanted)
    epochs, former = (wanted.partition_epoch, wanted.leader_epoch), (held.partition_epoch, held.leader_epoch)
    if epochs < former:
        raise StaleDecisionError(
            f"{decided.topic}-{number}: decision {decided.seq} is of partition epoch {epochs[0]} and leader epoch "
            f"{epochs[1]}, after {former[0]} and {former[1]}"
        )
    elected = epochs[1] == former[1] + 1
    same = epochs[1] == former[1] and wanted.leader == held.leader
    if epochs[0] == former[0] + 1 and (elected or same):
        return change_record(topic_id, number, held, wanted)
    return partition_record(topic_id, number, wanted)


def changed_directories(draft: MetadataDraft, broker: int, *, is_new: bool) -> Iterator[bytes]:
    """Change the partitions with a replica on ``broker`` whose log directory the broker no longer has.

    Epochs stay as they are, because nothing was decided. Brokers treat a replica in an unknown directory as offline.
    """
    for _, topic_id in sorted(draft.topic_ids.items()):
        for number, held in draft.partitions(topic_id).in_order():
            if broker in held.replicas:
                directories = _directories_after(draft, broker, held, is_new=is_new)
                if directories != held.directories:
                    state = replace(held, directories=directories)
                    draft.opened(topic_id).set(number, state)
                    yield partition_record(id_bytes(topic_id), number, state)


def _directories_after(draft: MetadataDraft, broker: int, held: PartitionState, *, is_new: bool) -> tuple[str, ...]:
    """Return the log directories of a partition after those of ``broker`` have changed, or it is registered again."""
    pairs = zip(held.replicas, held.directories, strict=True)
    return tuple(
        [
            _directory(draft, replica, MIGRATING if is_new and replica == broker else directory)
            for replica, directory in pairs
        ]
    )


def _directory(draft: MetadataDraft, replica: int, former: str) -> str:
    """Return where a replica is: where it was if its broker still has that, or else in the broker's only directory.

    Where a broker has several, decisions name the directory.
    """
    broker = draft.brokers.get(replica)
    if broker is None or former in broker.log_dirs:
        return former
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else MIGRATING


def _assigned(replicas: Ids, directories: tuple[str, ...], to: Mapping[int, str]) -> tuple[str, ...]:
    """Return the log directories, with the ones that brokers have just named."""
    pairs = zip(replicas, directories, strict=True)
    return tuple([uuid_of(to[replica]) if replica in to else former for replica, former in pairs])
