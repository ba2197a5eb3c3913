"""What the query needs of every bus that it reads.

Each kind of bus has one module in this package, named after ``Bus.kind``. ``followed_pages`` is a part of the one that
reads Kafka. No other module of this room depends on which bus an engine has. ``CONTRIBUTING.md`` says what else a new
kind of bus needs.
"""

from importlib import import_module
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from bus.interface import Bus
from conf.settings import Settings
from streaming.keys import Keys


class Source(Protocol):
    """A bus as the source of the query. A batch ends at ``{"seq": end}``, and has the events through that seq."""

    # Whether only processes of this machine can read the bus.
    is_local: bool
    # Whether ``events`` can give pages before it gives events.
    has_pages: bool
    # Whether Spark's question for the next batch waits for something to decide.
    watches: bool

    def events(
        self,
        session: SparkSession,
        settings: Settings,
        *,
        keys: Keys,
        after: int,
        defer: bool,
        spool_dir: Path | None,
        claim_note: Path | None = None,
    ) -> DataFrame:
        """Return the stream of the events after seq ``after``, in the order of seq, as rows for shards (``fan_out``).

        With ``defer``, heartbeats and offsets start no batch by themselves. The source may keep files in ``spool_dir``
        while the query runs. Without one, executors may be on other machines.

        With ``claim_note``, the stream begins with the pages of the bus's state, and then has pages that change. When
        the note has been written to that file (``ClaimNote``), it goes on with the events after that state.
        """
        ...

    def interval_ms(self, settings: Settings) -> int | None:
        """Return the time between the starts of two batches; None if a batch starts as soon as there are events."""
        ...


def module_of(kind: str) -> str:
    """Return the name of the module that reads a kind of bus (``Bus.kind``)."""
    return f"streaming.sources.{kind}"


def source_of(bus: Bus) -> Source:
    """Return the source that reads ``bus``. Its module is imported only now, because that may load a bus's client."""
    source: Source = import_module(module_of(bus.kind)).source(bus)
    return source
