"""Check, before a log is served, that it is the translation of the decisions.

Brokers that have read a part of the metadata log must always find the same bytes there. So at each start a gateway
translates the decisions after its newest snapshot again, and compares the result with the disk, byte by byte. Retention
may have removed some of these decisions from the bus. In their place the gateway trusts the log's own records.
"""

from collections.abc import Iterator
from typing import NamedTuple

from brokers.engine.alike_decisions import GivenDecision
from brokers.engine.committed_state import decisions_of
from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.entries import encode_entry, records_in
from brokers.gateways.kraft.log.errors import LackingError, StorageError
from brokers.gateways.kraft.log.metadata_log import MetadataLog
from brokers.gateways.kraft.log.segment import Unit
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.image import NO_QUORUM, MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.gateways.shared.whole_events import whole_events
from bus.image import read_image
from bus.interface import AFTER_ALL_OF, Bus, TrimmedError


class Begun(NamedTuple):
    """The place to continue: after decision ``seq``, with the image after all decisions up to it."""

    seq: int
    image: MetadataImage


def compared(log: MetadataLog, bus: Bus) -> Begun:
    """Compare a log with the decisions on the bus.

    Raises ``StorageError`` when the log has more than the decisions give, or differs from them. Raises ``LackingError``
    when decisions that the log lacks were removed.
    """
    if log.end.seq > (decided := bus.decided_seq()):
        raise StorageError(
            f"{log.directory}: the metadata log ends {_where(log.end)}, and the decisions on the bus at {decided}: "
            "brokers would lose what they have read. Is it the bus that this log was made from?"
        )
    held = _Held(log)
    gone = trimmed_through(bus, held.base.seq)
    begun = held.replayed_through(gone)
    # Before the quorum's first leader a log has no records that could stand in for removed decisions.
    if is_trimmed(bus, begun.seq) or (gone > 0 and begun.image.quorum_epoch == NO_QUORUM):
        begun = _of_state(bus, log)
    return held.compared(bus, begun)


class _Held:
    """The content of a log after its newest snapshot, read once and in order."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        newest = log.snapshots[-1] if log.snapshots else None
        self.base = log.base_of(newest)
        self._image = MetadataImage() if newest is None else snapshots.read_image(log.directory, newest)
        self._units = log.units(self.base)
        self._next = next(self._units, None)
        self._offset = self.base.offset

    def replayed_through(self, seq: int) -> Begun:
        """Replay the log's own records for the decisions up to ``seq``, instead of translating them; 0 replays none.

        The first records of a log sum up everything that was decided before them. A translation of single decisions
        does not give them, so they are replayed too, unless ``seq`` is 0.
        """
        draft, after = MetadataDraft(self._image), self.base.seq
        while (unit := self._next) is not None and (unit.seq <= seq or (seq > 0 and draft.quorum_epoch == NO_QUORUM)):
            for record in records_in(unit.data):
                draft.replay(record)
            draft.quorum_epoch = unit.quorum_epoch
            after = unit.seq
            self._pass(unit)
        return Begun(max(after, min(seq, self._log.end.seq)), draft.image())

    def compared(self, bus: Bus, begun: Begun) -> Begun:
        """Translate decisions until the log's end is reached. Decisions that the log lacks are left for later."""
        seq, image = begun
        for decisions in events(bus, seq) if self._next is not None else ():
            image_after, entry = translate(image, decisions)
            if entry is not None:
                if self._next is None:
                    break
                self._expect(self._next, Unit(entry.seq, entry.quorum_epoch, *encode_entry(entry, self._offset)))
                self._pass(self._next)
            image, seq = image_after, decisions[0].seq
        if self._next is not None:
            raise self._differs(self._next, "translate to no records")
        return Begun(seq, image)

    def _pass(self, unit: Unit) -> None:
        self._offset = unit.end_offset
        self._next = next(self._units, None)

    def _expect(self, held: Unit, translated: Unit) -> None:
        if held != translated:
            same = held[:2] == translated[:2]
            raise self._differs(
                held,
                "translate to other records"
                if same
                else f"next translate to records of decision {translated.seq} in epoch {translated.quorum_epoch}",
            )

    def _differs(self, held: Unit, what: str) -> StorageError:
        return StorageError(
            f"{self._log.directory}: at offset {self._offset} the metadata log holds records of decision {held.seq} "
            f"in epoch {held.quorum_epoch}, and the decisions on the bus {what}. The log ends {_where(self._log.end)}. "
            "Is it the bus that this log was made from?"
        )


def _where(end: End) -> str:
    return f"at offset {end.offset}, epoch {end.quorum_epoch}, decision {end.seq}"


def trimmed_through(bus: Bus, after: int) -> int:
    """Return the newest seq whose decisions are not all on the bus; 0 when all decisions after ``after`` are there."""
    if not is_trimmed(bus, after):
        return 0
    oldest = bus.decisions((0, -1), 1)
    if not oldest:
        return bus.decided_seq()
    # Retention by size may remove some of the decisions on one event and keep the others.
    return oldest[0].seq - 1 if oldest[0].idx == 0 else oldest[0].seq


def is_trimmed(bus: Bus, seq: int) -> bool:
    """Return whether decisions after ``seq`` were removed, or may have been."""
    try:
        # ``after=0`` never raises, so start from event 1.
        bus.decisions((seq, AFTER_ALL_OF) if seq > 0 else (1, -1), 1)
        if seq == 0:
            # Events and decisions are removed together, so if event 1 is gone, its decisions may be too.
            bus.read(0, 1)
    except TrimmedError:
        return True
    return False


def _of_state(bus: Bus, log: MetadataLog) -> Begun:
    """Begin with the committed state, because decisions are gone. This works only before the quorum's first leader.

    The log's first records sum up what was decided before that leader. They are the same, whether they come from the
    decisions or from the state.
    """
    image = bus.image()
    if log.end.offset > 0 or read_image(image).cluster.quorum.quorum_epoch != NO_QUORUM:
        raise LackingError(
            f"{log.directory}: the metadata log ends {_where(log.end)}, and decisions after that were removed from the "
            f"bus, which has decided up to {image.seq}"
        )
    decisions = list(decisions_of(image))
    return Begun(image.seq, translate(MetadataImage(), decisions).image if decisions else MetadataImage())


def events(bus: Bus, after: int) -> Iterator[list[GivenDecision]]:
    """Yield the decisions after ``after`` in whole events, up to the last event that is decided now."""
    through = bus.decided_seq()
    while groups := whole_events(bus, after):
        for group in groups:
            after = group[0].seq
            if after > through:
                return
            yield group
