"""What the query asks of a bus that it reads from, whatever the bus is.

Each kind of bus has one module in this package, named after ``Bus.kind``. Nothing else in ``streaming`` knows
which bus there is. To add a bus, write it (``bus/``), write its source here, and add its URL to ``bus/open_bus.py``.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bus.interface import Bus
from conf.settings import Settings

# Turns the rows of one micro-batch, as Spark gives them, into rows of events in the order of seq (``event_rows``).
Order = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
# Returns an event's seq. It gets the seq that ``Order`` gave, and the last seq that was decided before the batch.
Place = Callable[[int, int], int]


def as_numbered(seq: int, before: int) -> int:
    """Return ``seq``: the ``Place`` of a bus on which every event has its seq from the start."""
    return seq


class Source(Protocol):
    """A bus as the source of the query.

    ``connector`` names the set of jars (``conf/jars.py``) that Spark needs to read the bus; None if it needs none.
    """

    connector: str | None

    def events(self, session: SparkSession, settings: Settings, *, after: int, defer: bool) -> DataFrame:
        """Return the stream of the events after seq ``after``.

        With ``defer``, heartbeats and offsets start no batch by themselves, if the bus can do that.
        """
        ...

    def order(self, spill_dir: Path) -> Order | None:
        """Return what orders a micro-batch; None if Spark already gives events in the order of seq.

        It runs in a Python worker. What does not fit in memory goes to a file in ``spill_dir``.
        """
        ...

    def place(self) -> Place:
        """Return what gives events their seqs in the stateful operator, which knows what came before the batch."""
        ...

    def interval_ms(self, settings: Settings) -> int | None:
        """Return the time between the starts of two batches; None if a batch starts as soon as there are events."""
        ...

    def end_of(self, offset: Mapping[str, Any]) -> int | None:
        """Return where a batch ends, from the offset in Spark's log; None if it cannot be read.

        Ends of one source compare with each other and with nothing else.
        """
        ...

    def newest_end(self) -> int:
        """Return the greatest end that a batch can have now."""
        ...

    def is_decided_to(self, end: int) -> bool:
        """Say whether the bus has decided all events of a batch that ends at ``end``, and none after it."""
        ...


def source_of(bus: Bus) -> Source:
    """Return the source that reads ``bus``; its module is imported only now, because it may load a client."""
    source: Source = import_module(f"streaming.sources.{bus.kind}").source(bus)
    return source
