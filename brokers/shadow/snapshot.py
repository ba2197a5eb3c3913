"""The bytes of a snapshot: batches, between control records that say where it begins and ends."""

from brokers.shadow.decoding import decoded
from brokers.shadow.source import Snapshot
from brokers.wire.messages import WireError
from brokers.wire.metadata.record_frame import Record
from brokers.wire.record_batch import decode_batches
from brokers.wire.schema import Values

_HEADER, _FOOTER = "SnapshotHeaderRecord", "SnapshotFooterRecord"


def decoded_snapshot(end_offset: int, epoch: int, data: bytes | bytearray) -> Snapshot:
    """Decode a whole snapshot. Raises ``WireError`` if it is damaged or has no end."""
    records: list[Record] = []
    control: dict[str, Values] = {}
    for batch in map(decoded, decode_batches(memoryview(data))):
        if batch.is_control:
            control |= {record.name: record.values for record in batch.records}
        else:
            records += batch.records
    if _HEADER not in control or _FOOTER not in control:
        raise WireError(f"a snapshot without a {_HEADER} or a {_FOOTER}")
    return Snapshot(end_offset, epoch, control[_HEADER]["LastContainedLogTimestamp"], tuple(records))
