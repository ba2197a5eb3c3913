"""Make a gateway's log from a broker's copy, if the remaining decisions prove that the copy is whole.

The problem: all gateways have lost their logs, and retention has removed the oldest decisions from the bus. Brokers
still hold the log's bytes, and stop if they are served fewer or other ones. But a broker's batches do not say which
decisions they came from, so the copy does not tell at which decision to continue. A guess would repeat or lose records.

The insight: the translation is deterministic, so it can be run on trial. Take the oldest decision that is left, suppose
that it made batch ``n``, and translate from there. If the bytes match up to the end of the copy, ``n`` is the place:

    copy        | b0 | b1 | b2 | b3 | b4 |
    decisions      (removed)   | d7 | d8 | d9          try n = 0, 1, 2, 3: d7 makes b3, d8 makes b4, and d9 is next

Then everything before that place came from removed decisions, and none of their records is missing, because the records
of the remaining decisions follow directly.

A match is no proof if the same bytes may occur twice: a setting that is changed back and forth, a broker that is fenced
and comes back. So at least one record must be unique in the log (``_is_proof``).

If the copy ends before the oldest decision, there is nothing to compare. Then the log's image must agree with the
engine's committed state, and the copies of all registered brokers must be there. The longest copy is used. A shorter
one could agree with the state and still lack records: two changes that undo each other leave no trace in the state, but
a broker may have read them.
"""

import os
import shutil
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from brokers.gateways.kraft.log.comparison import events, is_trimmed, trimmed_through
from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.entries import encode_entry, records_in
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.log.segment import Segment, Unit
from brokers.gateways.kraft.log.snapshots import path_of
from brokers.gateways.kraft.metadata.draft import MetadataDraft, ReplayError
from brokers.gateways.kraft.metadata.image import NO_QUORUM, MetadataImage
from brokers.gateways.kraft.metadata.partitions import StaleDecisionError
from brokers.gateways.kraft.metadata.translate import Entry, translate
from brokers.gateways.kraft.rebuilding.broker_copy import BrokerCopy, Copied, CopyError, read
from brokers.gateways.kraft.rebuilding.state_comparison import differences
from brokers.wire.messages import WireError
from brokers.wire.metadata.record_frame import decode_record
from bus.image import read_image
from bus.interface import Bus
from conf.whole_file import flush_directory

# These records may occur twice with the same bytes, because two events of the same time may make the same record, and
# the engine's clock may be set back. Every other record occurs only once: it has an id or an epoch, belongs to one
# partition epoch, or has a time that occurs only once in its quorum epoch (``NoOp``).
_RECURRING = ("ConfigRecord", "RegisterBrokerRecord", "BrokerRegistrationChangeRecord")


class _Place(NamedTuple):
    """The batches from ``number`` on came from decisions that are still on the bus; ``units`` are those batches."""

    number: int
    units: tuple[Unit, ...]


def write_proven_log(
    copies: Sequence[Path], cluster_id: str, bus: Bus, into: Path, without: frozenset[int] = frozenset()
) -> Path:
    """Write the longest copy as a log into an empty directory if it can be proven whole, and return that copy.

    The brokers in ``without`` will not start again, so their copies may be missing.

    Raises ``StorageError``, which names what is missing. Then nothing in ``into`` may be used.
    """
    longest, others = _longest([read(path, cluster_id) for path in copies if path.exists()], copies)
    if not is_trimmed(bus, 0):
        raise CopyError("the bus still has all decisions: a gateway with an empty directory writes its log from them")
    gone = trimmed_through(bus, 0)
    place = _place(longest, bus, gone) or _proven_by_state(
        longest, bus, gone, without | {copy.broker for copy in (longest, *others)}
    )
    _write(longest, place, gone, into)
    return longest.directory


def _longest(read_copies: Sequence[BrokerCopy], named: Sequence[Path]) -> tuple[BrokerCopy, list[BrokerCopy]]:
    """Return the longest copy and the others, which must agree with it. Raises ``CopyError``."""
    if not read_copies:
        raise CopyError(f"there is no copy of the metadata log at {', '.join(map(str, named))}")
    longest, *others = sorted(read_copies, key=lambda copy: copy.end_offset, reverse=True)
    held = {one.batch.base_offset: one.batch for one in longest.batches}
    for copy in others:
        for one in copy.batches:
            same = held.get(one.batch.base_offset)
            if one.batch.base_offset >= longest.start_offset and same != one.batch:
                raise CopyError(
                    f"{copy.directory} and {longest.directory} differ at offset {one.batch.base_offset}: "
                    "one of them is of another log"
                )
    return longest, others


def _place(copy: BrokerCopy, bus: Bus, gone: int) -> _Place | None:
    """Find the batch from which on the decisions after ``gone`` match the copy up to its end; None if there is none."""
    times = {decisions[0].time_ms for decisions in events(bus, gone)}
    candidates = {n for n, one in enumerate(copy.batches) if one.batch.first_timestamp in times}
    for number, image in _images(copy, candidates):
        if image.quorum_epoch == NO_QUORUM:
            continue
        if (units := _matched(copy, number, image, bus, gone)) is not None:
            return _Place(number, units)
    return None


def _images(copy: BrokerCopy, numbers: Set[int]) -> Iterator[tuple[int, MetadataImage]]:
    """Replay a copy batch by batch, and yield the image before each batch in ``numbers``."""
    draft = MetadataDraft(copy.image())
    for number in range(len(copy.batches) + 1):
        if number in numbers:
            image = draft.image()
            yield number, image
            draft = MetadataDraft(image)
        if number < len(copy.batches):
            _replay(draft, copy, copy.batches[number])


def _replay(draft: MetadataDraft, copy: BrokerCopy, one: Copied) -> None:
    try:
        for record in records_in(copy.data[one.position : one.position + one.batch.size]):
            draft.replay(record)
    except (ReplayError, WireError) as error:
        raise CopyError(f"{copy.directory} is damaged at offset {one.batch.base_offset}: {error}") from error
    draft.quorum_epoch = one.batch.leader_epoch


def _matched(copy: BrokerCopy, number: int, image: MetadataImage, bus: Bus, gone: int) -> tuple[Unit, ...] | None:
    """Translate the decisions after ``gone`` and compare them with the batches from ``number``; None if one differs."""
    first = copy.batches[number]
    position, offset = first.position, first.batch.base_offset
    units, met = list[Unit](), list[Entry]()
    for decisions in events(bus, gone):
        try:
            image, entry = translate(image, decisions)
        except (StaleDecisionError, ReplayError, LookupError):
            return None
        if entry is None:
            continue
        data, offset = encode_entry(entry, offset)
        held = copy.data[position : position + len(data)]
        if not data.startswith(held):
            return None
        met.append(entry)
        if held == data:
            units.append(Unit(entry.seq, entry.quorum_epoch, data, offset))
        # A copy may end within the batches of one event. Then the gateway writes all of that event again.
        position += len(held)
        if position == len(copy.data):
            return tuple(units) if _is_proof(met) else None
    return None


def _is_proof(met: Sequence[Entry]) -> bool:
    """Return whether the matched bytes can have come from no other decisions, because one record of them is unique."""
    names = (decode_record(record).name for entry in met for record in entry.records)
    return any(entry.leader_change for entry in met) or any(name not in _RECURRING for name in names)


def _proven_by_state(longest: BrokerCopy, bus: Bus, gone: int, seen: Set[int]) -> _Place:
    """Prove a log that ends before the oldest decision by the state that it gives. Raises ``CopyError``."""
    [(_, image)] = _images(longest, {len(longest.batches)})
    state = bus.image()
    if image.quorum_epoch != NO_QUORUM:
        try:
            for decisions in events(bus, gone):
                if decisions[0].seq <= state.seq:
                    image = translate(image, decisions).image
        except (StaleDecisionError, ReplayError, LookupError) as error:
            raise CopyError(f"{longest.directory}: the decisions on the bus do not follow from it: {error}") from error
    ends = f"{longest.directory} ends at offset {longest.end_offset}"
    if unlike := differences(image, state):
        raise CopyError(f"{ends} and lacks what was decided before the oldest decision on the bus: {unlike}")
    missing = sorted(read_image(state).cluster.brokers.keys() - seen)
    if missing:
        raise CopyError(
            f"{ends}, before the oldest decision on the bus. Only the copies of all brokers show whether that is "
            f"everything, and those of {', '.join(map(str, missing))} are missing"
        )
    return _Place(len(longest.batches), ())


def _write(copy: BrokerCopy, place: _Place, gone: int, into: Path) -> None:
    """Write the segment and the snapshot of a copy, with the ends that follow, and force them to disk.

    Which removed decision a batch came from is not known, so all batches before ``place`` get the seq ``gone``.
    """
    epoch = copy.snapshot.epoch if copy.snapshot else NO_QUORUM
    if copy.snapshot is not None:
        source = path_of(copy.directory, copy.snapshot)
        shutil.copyfile(source, into / source.name)
        with (into / source.name).open("rb") as file:
            os.fsync(file.fileno())
    segment = Segment.create(into, End(seq=0, offset=copy.start_offset, position=0, quorum_epoch=epoch, crc=0))
    try:
        before = [
            Unit(gone, one.batch.leader_epoch, copy.data[one.position : one.position + one.batch.size], next_offset)
            for one in copy.batches[: place.number]
            if (next_offset := one.batch.next_offset)
        ]
        end = before[-1] if before else Unit(gone, epoch, b"", copy.start_offset)
        segment.append([*before, *([] if place.units else [end._replace(seq=gone, data=b"")]), *place.units])
    except OSError as error:
        raise StorageError(f"{into} cannot be written: {error}") from error
    finally:
        segment.close()
    flush_directory(into)
