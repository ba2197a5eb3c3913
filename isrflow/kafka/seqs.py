"""The total order on Kafka: an event's seq is the offset after it in the events topic, so the first one has seq 1.

Markers of transactions take offsets too, so seqs have gaps.
"""


def seq_of(offset: int) -> int:
    """Return the seq of the event at ``offset``."""
    return offset + 1


def offset_after(seq: int) -> int:
    """Return the offset of the first event whose seq is greater than ``seq``."""
    return max(0, seq)
