"""The total order on Kafka: an event's seq, from its offset.

Offsets events travel in a topic of their own and have no place among control events until a batch
gives them one, right after the event that stands before them. So that there is a seq for them,
control events stand ``SLOTS`` apart: the one at offset n has the seq (n + 1) * SLOTS.
"""

SLOTS = 1 << 20


def seq_of(offset: int) -> int:
    """Return the seq of the control event at ``offset``."""
    return (offset + 1) * SLOTS


def offset_after(seq: int) -> int:
    """Return the offset of the first control event whose seq is greater than ``seq``."""
    return max(0, seq // SLOTS)


def unplaced(nth: int) -> int:
    """Return what stands for the seq of a batch's ``nth`` event, from 1, while the one before the batch is not known.

    It is negative, and orders before every seq. Raises ``ValueError`` when there are more than fit.
    """
    if nth >= SLOTS:
        raise ValueError(f"a batch holds {nth} log_end_offset events in a row: max.events.per.batch must be below that")
    return nth - SLOTS


def placed(seq: int, before: int) -> int:
    """Return the seq itself, or where it is ``unplaced`` the one that it has after the event ``before``.

    Raises ``ValueError`` when it would run into the next control event's.
    """
    if seq >= 0:
        return seq
    found = before + seq + SLOTS
    if found // SLOTS != before // SLOTS:
        raise ValueError(f"more than {SLOTS} log_end_offset events came after seq {before} without a tick")
    return found
