"""Before a log is served: is it what the decisions tell?

The metadata log follows from the decisions, and brokers that have read some of it must find the same there
ever after. So a start reads the decisions again from the newest snapshot on, and holds what they come to
against what is on disk, byte by byte. Where retention has removed decisions that are in the log already,
the log's own records stand in for them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from brokers.engine.committed_state import decisions_of
from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.entries import encode_entry, records_in
from brokers.gateways.kraft.log.errors import LackingError, StorageError
from brokers.gateways.kraft.log.metadata_log import MetadataLog
from brokers.gateways.kraft.log.segment import Unit
from brokers.gateways.kraft.log.whole_events import AFTER_ALL_OF, whole_events
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.image import NO_QUORUM, MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from bus.image import read_image
from bus.interface import Bus, TrimmedError
from state.decisions import AnyDecision, decode


class Begun(NamedTuple):
    """Say where to go on: the decisions after ``seq`` are next, and ``image`` is what came of all before."""

    seq: int
    image: MetadataImage


def compared(log: MetadataLog, bus: Bus) -> Begun:
    """Hold a log against the decisions on the bus.

    Raises ``StorageError`` when the log holds more than the decisions tell or something else, ``LackingError``
    when decisions are gone that it lacks.
    """
    if log.end.seq > (decided := bus.decided_seq()):
        raise StorageError(
            f"{log.directory}: the metadata log ends {_where(log.end)}, and the decisions on the bus at {decided}: "
            "brokers would lose what they have read. Is it the bus that this log was made from?"
        )
    held = _Held(log)
    begun = held.replayed_through(trimmed_through(bus, held.base.seq))
    if is_trimmed(bus, begun.seq):
        begun = _of_state(bus, log)
    return held.compared(bus, begun)


class _Held:
    """What the log holds after its newest snapshot, read once and in order."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        newest = log.snapshots[-1] if log.snapshots else None
        self.base = log.base_of(newest)
        self._image = MetadataImage() if newest is None else snapshots.read_image(log.directory, newest)
        self._units = log.units(self.base)
        self._next = next(self._units, None)
        self._offset = self.base.offset

    def replayed_through(self, seq: int) -> Begun:
        """Take the log's own records for what the decisions up to ``seq`` came to; with 0 for none.

        The first records of all hold everything before them, so decisions alone do not make them again.
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
        """Translate decisions until all that the log holds was met; the first that it lacks are left for later."""
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
            raise self._differs(self._next, "come to nothing there")
        return Begun(seq, image)

    def _pass(self, unit: Unit) -> None:
        self._offset = unit.end_offset
        self._next = next(self._units, None)

    def _expect(self, held: Unit, told: Unit) -> None:
        if held != told:
            same = held[:2] == told[:2]
            raise self._differs(
                held,
                "come to other records"
                if same
                else f"come next to records of decision {told.seq} in epoch {told.quorum_epoch}",
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
    """Say up to which decision the bus has not all any more; 0 when it has all that follow decision ``after``."""
    if not is_trimmed(bus, after):
        return 0
    oldest = bus.decisions((0, -1), 1)
    if not oldest:
        return bus.decided_seq()
    # Retention by size may cut between the decisions on one event.
    return oldest[0].seq - 1 if oldest[0].idx == 0 else oldest[0].seq


def is_trimmed(bus: Bus, seq: int) -> bool:
    """Say whether decisions after ``seq`` were removed, or may have been."""
    try:
        # After 0 decisions are read as far as there are any, so who has seen none asks as if for those on event 1.
        bus.decisions((seq, AFTER_ALL_OF) if seq > 0 else (1, -1), 1)
        if seq == 0:
            # Where events and decisions are removed together, those on event 1 alone are told by the event.
            bus.read(0, 1)
    except TrimmedError:
        return True
    return False


def _of_state(bus: Bus, log: MetadataLog) -> Begun:
    """Begin with the state as it stands, where a quorum has yet to begin and decisions before it are gone.

    What is decided before the quorum's first leader is written with it, in one order whatever way it came.
    """
    image = bus.image()
    if log.end.offset > 0 or read_image(image).cluster.quorum.quorum_epoch != NO_QUORUM:
        raise LackingError(
            f"{log.directory}: the metadata log ends {_where(log.end)}, and decisions after that were removed from the "
            f"bus, which has decided up to {image.seq}"
        )
    told = list(decisions_of(image))
    return Begun(image.seq, translate(MetadataImage(), told).image if told else MetadataImage())


def events(bus: Bus, after: int) -> Iterator[list[AnyDecision]]:
    """Read the decisions after ``after`` up to the last event that is decided now, in whole events."""
    through = bus.decided_seq()
    while groups := whole_events(bus, after):
        for group in groups:
            after = group[0].seq
            if after > through:
                return
            yield [decode(one.body) for one in group]
