"""Events as rows, in the one shape that every source gives them."""

from collections.abc import Sequence

import pyarrow as pa

from bus.interface import Entry

SCHEMA = "seq LONG, raw BINARY, entered_ms LONG, is_claim BOOLEAN, found_ms LONG"
ARROW_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("raw", pa.binary()),
        ("entered_ms", pa.int64()),
        ("is_claim", pa.bool_()),
        ("found_ms", pa.int64()),
    ]
)
# A single event may be longer. This is a limit because Spark holds several copies of a whole Arrow batch.
BYTES_PER_ARROW_BATCH = 4 * 1024 * 1024
ROWS_PER_ARROW_BATCH = 20_000


def rows_of(entries: Sequence[Entry]) -> pa.RecordBatch:
    """Return events as rows."""
    columns = zip(*entries, strict=True) if entries else [()] * len(ARROW_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ARROW_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
