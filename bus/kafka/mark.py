"""The records of the controller topic: the newest claims, and the last decided event."""

import msgspec

from bus.interface import BusError

CLAIMS_KEPT = 100


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
    # For each of them: (``through`` at the claim, offset of its event, timestamp of its event).
    found: tuple[tuple[int, int, int], ...] = ()
    # How many times the image was replaced.
    layouts: int = 0
    # The newest epoch whose job decides nothing more; resigned <= controller_epoch.
    resigned: int = 0

    def with_claim(self, controller_epoch: int, offset: int, time_ms: int) -> "Mark":
        """Return the mark with one more claim. Beyond ``CLAIMS_KEPT``, drop the oldest, which was decided long ago."""
        claims = (*self.claims, (controller_epoch, offset))[-CLAIMS_KEPT:]
        found = (*self.found, (self.through, offset, time_ms))[-CLAIMS_KEPT:]
        return msgspec.structs.replace(self, claims=claims, found=found)


# Made at import, because several threads may read their first mark at once (see ``brokers/wire/layout.py``).
_decoder = msgspec.json.Decoder(Mark)


def decode_mark(body: bytes) -> Mark:
    """Read a mark. Raises ``BusError`` if ``body`` is not one."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise BusError(f"the controller topic holds a record that is not a mark: {error}") from error
