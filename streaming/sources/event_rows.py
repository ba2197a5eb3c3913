"""Events as rows, in the one shape that every source gives them. Pages of a state have the same shape."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bus.interface import Entry, Page

SCHEMA = "seq LONG, raw BINARY, entered_ms LONG, is_claim BOOLEAN, found_ms LONG, shard INT, page INT"
ARROW_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("raw", pa.binary()),
        ("entered_ms", pa.int64()),
        ("is_claim", pa.bool_()),
        ("found_ms", pa.int64()),
        # Of a page, whose bytes are in ``raw``. Null if the row is an event.
        ("shard", pa.int32()),
        ("page", pa.int32()),
    ]
)
_OF_EVENTS = ARROW_SCHEMA.names[: len(Entry._fields)]
# A single event may be longer. This is a limit because Spark holds several copies of a whole Arrow batch.
BYTES_PER_ARROW_BATCH = 4 * 1024 * 1024
ROWS_PER_ARROW_BATCH = 20_000


def rows_of(entries: Sequence[Entry]) -> pa.RecordBatch:
    """Return events as rows."""
    columns = zip(*entries, strict=True) if entries else [()] * len(Entry._fields)
    return _rows(len(entries), dict(zip(ARROW_SCHEMA.names, columns, strict=False)))


def rows_of_pages(pages: Sequence[Page]) -> pa.RecordBatch:
    """Return pages of a state as rows."""
    columns = zip(*pages, strict=True) if pages else [()] * len(Page._fields)
    return _rows(len(pages), dict(zip(("shard", "page", "raw"), columns, strict=True)))


def pages_in(rows: pa.RecordBatch) -> list[Page]:
    """Return the pages in rows that are pages, and none if they are events."""
    if rows.column("page").null_count:
        return []
    columns = (rows.column(name).to_pylist() for name in ("shard", "page", "raw"))
    return [Page(*row) for row in zip(*columns, strict=True)]


def entries_in(rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Give what ``rows_of`` was given, as plain tuples."""
    return zip(*(rows.column(name).to_pylist() for name in _OF_EVENTS), strict=True)


def _rows(count: int, columns: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in ARROW_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
