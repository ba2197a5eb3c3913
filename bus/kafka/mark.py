"""The records of the controller topic: the newest claims, and the last decided event."""

from collections.abc import Iterable

import msgspec

from bus.interface import BusError
from isrflow.kafka.seqs import offset_after

CLAIMS_KEPT = 100
# Jobs that fail again and again may claim this often before one of them decides. A mark of 1,000 has some 70 KB.
UNDECIDED_CLAIMS_MAX = 1_000


class Mark(msgspec.Struct, frozen=True):
    """The newest claims, and the last decided event. The newest mark counts.

    A transaction's topics become readable one after the other. A reader that cannot read all decisions of the newest
    mark yet still uses the mark before it.
    """

    controller_epoch: int = 0
    controller_id: str = ""
    # All events up to this seq are decided.
    through: int = 0
    # The (seq, index) of the newest decision.
    last_decision: tuple[int, int] = (0, -1)
    # The offset after the newest decision.
    decisions_end: int = 0
    # ``through`` of the mark before this one; before <= through.
    before: int = 0
    # The number that identifies the bus.
    bus_id: int = 0
    # The newest claims: (controller epoch, offset of its event).
    claims: tuple[tuple[int, int], ...] = ()
    # What the newest claims and telling ticks found undecided: (``through`` then, the event's offset, its timestamp).
    found: tuple[tuple[int, int, int], ...] = ()
    # How many times the image was replaced.
    layouts: int = 0
    # The newest epoch whose job decides nothing more; resigned <= controller_epoch.
    resigned: int = 0

    def with_claim(self, controller_epoch: int, offset: int, time_ms: int) -> "Mark":
        """Return the mark with one more claim.

        Keep the newest ``CLAIMS_KEPT``. Keep more, up to ``UNDECIDED_CLAIMS_MAX``, if their events are in or after the
        last batch, which may be repeated.
        """
        claims = (*self.claims, (controller_epoch, offset))
        kept = self._kept(offset for _, offset in claims)
        return msgspec.structs.replace(self.with_found(offset, time_ms), claims=claims[-kept:])

    def with_found(self, offset: int, time_ms: int) -> "Mark":
        """Return the mark with one more event that says what is undecided. It keeps as many of them as of claims."""
        found = (*self.found, (self.through, offset, time_ms))
        kept = self._kept(offset for _, offset, _ in found)
        return msgspec.structs.replace(self, found=found[-kept:])

    def _kept(self, offsets: Iterable[int]) -> int:
        first = offset_after(self.before)
        needed = sum(offset >= first for offset in offsets)
        return min(max(CLAIMS_KEPT, needed), UNDECIDED_CLAIMS_MAX)


def newer(one: Mark, other: Mark) -> Mark:
    """Return the newer of two marks."""
    return max(one, other, key=_age)


def _age(mark: Mark) -> tuple[int, ...]:
    found_offset = mark.found[-1][1] if mark.found else -1
    return mark.controller_epoch, mark.through, mark.layouts, mark.resigned, found_offset


# Made at import, because several threads may read their first mark at once (see ``brokers/wire/layout.py``).
_decoder = msgspec.json.Decoder(Mark)


def decode_mark(body: bytes) -> Mark:
    """Read a mark. Raises ``BusError`` if ``body`` is not one."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise BusError(f"the controller topic holds a record that is not a mark: {error}") from error
