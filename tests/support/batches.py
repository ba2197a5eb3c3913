"""Record batches as producers make them."""

from kafka.record.default_records import DefaultRecordBatchBuilder


def batch(
    *values: bytes,
    timestamp: int = 1_000,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    compression: int = 0,
) -> bytes:
    """Make one batch; record ``i`` has time ``timestamp + i``."""
    builder = DefaultRecordBatchBuilder(2, compression, False, producer_id, producer_epoch, sequence, 1 << 20)
    for offset, value in enumerate(values):
        builder.append(offset, timestamp + offset, None, value, [])
    return bytes(builder.build())
