"""Events as rows, in the one shape that every source gives them. Pages of a state have the same shape."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

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
# A limit, because Spark holds several copies of a whole Arrow batch. A single event may be longer.
BYTES_PER_ARROW_BATCH = 4 * 1024 * 1024
ROWS_PER_ARROW_BATCH = 20_000
_T = TypeVar("_T")


def rows_of(entries: Sequence[Entry]) -> pa.RecordBatch:
    """Return events as rows."""
    columns = zip(*entries, strict=True) if entries else [()] * len(Entry._fields)
    return _rows(len(entries), dict(zip(ARROW_SCHEMA.names, columns, strict=False)))


def rows_of_pages(pages: Sequence[Page]) -> pa.RecordBatch:
    """Return pages of a state as rows."""
    columns = zip(*pages, strict=True) if pages else [()] * len(Page._fields)
    return _rows(len(pages), dict(zip(("shard", "page", "raw"), columns, strict=True)))


def slices(entries: Iterable[Entry]) -> Iterator[pa.RecordBatch]:
    """Cut events into Arrow batches of bounded count and bytes. A single longer event makes a batch of its own."""
    return map(rows_of, _cut(entries, lambda entry: len(entry.raw)))


def slices_of_pages(pages: Iterable[Page]) -> Iterator[pa.RecordBatch]:
    """Cut pages into Arrow batches with the same bounds."""
    return map(rows_of_pages, _cut(pages, lambda page: len(page.body)))


def _cut(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    some: list[_T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if some and (total + size > BYTES_PER_ARROW_BATCH or len(some) == ROWS_PER_ARROW_BATCH):
            yield some
            some, total = [], 0
        total += size
        some.append(item)
    if some:
        yield some


def pages_in(rows: pa.RecordBatch) -> list[Page]:
    """Return the pages in rows that are pages, and none if they are events."""
    if rows.column("page").null_count:
        return []
    columns = (rows.column(name).to_pylist() for name in ("shard", "page", "raw"))
    return [Page(*row) for row in zip(*columns, strict=True)]


def entries_in(rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield what ``rows_of`` was given, as plain tuples."""
    return zip(*(rows.column(name).to_pylist() for name in _OF_EVENTS), strict=True)


def _rows(count: int, columns: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in ARROW_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
