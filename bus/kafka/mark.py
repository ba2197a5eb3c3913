"""What stands in the controller topic: who has claimed, and how far is decided."""

import msgspec

from bus.interface import BusError

CLAIMS_KEPT = 100


class Mark(msgspec.Struct, frozen=True):
    """Tell who has claimed last, and how far is decided: the newest one counts.

    ``last_decision`` is the (seq, index) of the newest decision in the log, and ``decisions_end`` the offset after
    it. A transaction's topics become readable one after the other, so a reader who finds less than that still
    stands where the mark before this one did, at ``before``. ``bus_id`` is what the bus is known by. ``claims`` are
    the newest claims, each an epoch and the offset of its event; ``found`` says of each how far was decided by then,
    the offset of its event, and the time of that.
    """

    controller_epoch: int = 0
    controller_id: str = ""
    through: int = 0
    last_decision: tuple[int, int] = (0, -1)
    decisions_end: int = 0
    before: int = 0
    bus_id: int = 0
    claims: tuple[tuple[int, int], ...] = ()
    found: tuple[tuple[int, int, int], ...] = ()

    def with_claim(self, controller_epoch: int, offset: int, time_ms: int) -> "Mark":
        """Return the mark with one more claim; the oldest of too many goes, because it was decided long ago."""
        claims = (*self.claims, (controller_epoch, offset))[-CLAIMS_KEPT:]
        found = (*self.found, (self.through, offset, time_ms))[-CLAIMS_KEPT:]
        return msgspec.structs.replace(self, claims=claims, found=found)


def decode_mark(body: bytes) -> Mark:
    """Read a mark; raises ``BusError`` where there is none."""
    try:
        return msgspec.json.decode(body, type=Mark)
    except msgspec.MsgspecError as error:
        raise BusError(f"what stands on the bus is no mark of a controller: {error}") from error
