"""The total order on Kafka: how an event's seq follows from its offset.

The problem: control events and reports of log ends (``log_end_offset`` events) are in two topics, and Kafka orders only
within a topic. Every event needs a seq in one total order, and a repeated batch must give each event the same seq.

The insight: only control events need a seq before they are decided. So control events stand ``SLOTS`` apart, and the
one at offset n has the seq (n + 1) * SLOTS. A batch puts its reports into the slots after a control event.

    offset in the events topic     0             1                        2
    seq                            SLOTS         2 * SLOTS                3 * SLOTS
                                                 2 * SLOTS + 1, + 2, …
                                                 reports, placed here by a batch

If that control event is in an earlier batch, the Python worker that orders the batch does not know the last seq,
because there may be reports behind the event already. The worker then gives a negative stand-in (``unplaced``). The
stateful operator knows the last seq, and replaces the stand-in (``placed``).
"""

SLOTS = 1 << 20


def seq_of(offset: int) -> int:
    """Return the seq of the control event at ``offset``."""
    return (offset + 1) * SLOTS


def offset_after(seq: int) -> int:
    """Return the offset of the first control event whose seq is greater than ``seq``."""
    return max(0, seq // SLOTS)


def unplaced(nth: int) -> int:
    """Return the stand-in for the seq of a batch's ``nth`` event, counted from 1, if the seq before it is unknown.

    It is negative, so it orders before every seq. Raises ``ValueError`` if there are more events than slots.
    """
    if nth >= SLOTS:
        raise ValueError(f"a batch holds {nth} log_end_offset events in a row: max.events.per.batch must be below that")
    return nth - SLOTS


def placed(seq: int, before: int) -> int:
    """Return ``seq`` itself, or the seq that its stand-in has after the event ``before``.

    Raises ``ValueError`` if it would reach the next control event's seq.
    """
    if seq >= 0:
        return seq
    found = before + seq + SLOTS
    if found // SLOTS != before // SLOTS:
        raise ValueError(f"more than {SLOTS} log_end_offset events came after seq {before} without a tick")
    return found
