"""The total order on Kafka: how an event's seq follows from its offset.

The problem: control events and reports of log ends (``log_end_offset`` events) are in two topics, and Kafka orders only
within a topic. Every event needs a seq in one total order, and a repeated batch must give each event the same seq.

The insight: only control events need a seq before they are decided. So control events stand ``SLOTS`` apart, and the
one at offset n has the seq (n + 1) * SLOTS. A batch puts its reports into the slots after a control event.

    offset in the events topic     0             1                        2
    seq                            SLOTS         2 * SLOTS                3 * SLOTS
                                                 2 * SLOTS + 1, + 2, …
                                                 reports, placed here by a batch

A position between two batches (``batches.Position``) holds the last seq, because reports at the start of the next batch
follow it.
"""

SLOTS = 1 << 20


def seq_of(offset: int) -> int:
    """Return the seq of the control event at ``offset``."""
    return (offset + 1) * SLOTS


def offset_after(seq: int) -> int:
    """Return the offset of the first control event whose seq is greater than ``seq``."""
    return max(0, seq // SLOTS)


def slots_after(seq: int) -> int:
    """Return how many reports fit between the event with ``seq`` and the next control event."""
    return SLOTS - 1 - seq % SLOTS
