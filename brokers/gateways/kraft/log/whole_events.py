"""Read decisions from a bus event by event, never a part of what one event brought."""

from itertools import groupby

from bus.interface import Bus, Decided

CHUNK = 5_000
AFTER_ALL_OF = 2**31


def whole_events(bus: Bus, after: int) -> list[list[Decided]]:
    """Return the decisions on the events that follow ``after``, in order, event by event; none at the end.

    These are some thousands of decisions, and more where one event brought more. Raises ``BusError``.
    """
    read = chunk = bus.decisions((after, AFTER_ALL_OF), CHUNK)
    while len(chunk) == CHUNK and read[0].seq == read[-1].seq:
        chunk = bus.decisions((read[-1].seq, read[-1].idx), CHUNK)
        read = read + chunk
    groups = [list(group) for _, group in groupby(read, key=lambda decided: decided.seq)]
    # The end of a full chunk may have cut the last event: it is read again.
    return groups[:-1] if len(chunk) == CHUNK else groups
