"""How long events wait to be decided."""

from bus.clock import now_ms
from bus.interface import Bus

_ONE, _ANY_BYTES = 1, 1


def waiting_ms(bus: Bus) -> int:
    """Return how long ago the oldest event that is not decided entered the bus; 0 if all are decided."""
    decided, last = bus.decided_seq(), bus.last_seq()
    if last <= decided:
        return 0
    entered_ms = [entry.entered_ms for entry in bus.recorded(decided, last, _ONE, _ANY_BYTES)]
    return max([0, *(now_ms() - ms for ms in entered_ms if ms is not None)])
