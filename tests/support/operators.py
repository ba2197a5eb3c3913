"""The operators without a JVM: fan-out as a plain function, the shard operator in PySpark's tester."""

import random
from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from bus.interface import Bus, Entry, Image, Page
from controller_logic.replay import Recorded
from sinks.decision_log import DecisionLog
from state.policy import Policy
from streaming.fan_out import Routed, decode_packed, rows_of_events, rows_of_pages
from streaming.keys import SHARED, Keys, keys_of
from streaming.shard import ShardOperator, initial_rows

SHARDS, PAGES = 4, 3


def keys_of_one_partition(shards: int) -> Keys:
    """Return the keys that the query uses with one shuffle partition."""
    return keys_of(shards, 1, hash)


def fanned_out(log: Sequence[Recorded], shards: int) -> list[pa.RecordBatch]:
    """Return the Arrow batches that a source makes of a log."""
    return list(rows_of_events([Entry(*entry) for entry in log], keys_of_one_partition(shards)))


def packed_rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[int, bytes]]:
    """List the rows of Arrow batches: (key, packed events)."""
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def events_in(batches: Iterable[pa.RecordBatch]) -> list[list[Routed]]:
    """List the events of each slice, in the order of seq."""
    slices: list[list[Routed]] = []
    shared: list[Routed] = []
    for batch in batches:
        rows = [(key, decode_packed(body).routed) for key, body in packed_rows([batch])]
        if rows[0][0] < 0:
            shared = rows[0][1]
            continue
        own = [one for _, routed in rows for one in routed if one.raw is not None]
        slices.append(sorted([*shared, *own], key=lambda one: one.seq))
        shared = []
    return slices


def pages_in(batches: Iterable[pa.RecordBatch]) -> list[list[Page]]:
    """List the pages of each slice."""
    return [
        [Page(key, *page) for key, body in packed_rows([batch]) for page in decode_packed(body).pages]
        for batch in batches
    ]


def rows_of(log: Sequence[Recorded], pieces: int, shards: int = SHARDS) -> list[tuple[int, bytes]]:
    """Fan a batch out as Spark does, in several Arrow batches: (shard, packed events) in any order."""
    size = -(-len(log) // pieces)
    batches = [one for first in range(0, len(log), size) for one in fanned_out(log[first : first + size], shards)]
    rows = packed_rows(batches)
    random.Random(pieces).shuffle(rows)
    return rows


class OperatorCluster:
    """The query without Spark: one tester per shard, because each has its own state, and the sink behind them."""

    def __init__(
        self,
        bus: Bus,
        *,
        shards: int = SHARDS,
        pages: int = PAGES,
        controller_epoch: int = 0,
        image: Image | None = None,
    ) -> None:
        self.log = DecisionLog(bus, controller_epoch)
        rows = initial_rows(image.pages if image else (), range(shards))
        self.testers = [
            TwsTester(
                ShardOperator(shards, pages, Policy(), {}),
                initialStateRow=[(key, Row(pages=held)) for key, held in rows if key == shard],
            )
            for shard in range(shards)
        ]
        for tester in self.testers:
            # The tester never closes its processor, and Python's collector would stay off.
            tester.processor.close()

    def take_in(self, pages: Sequence[Page]) -> None:
        """Play a micro-batch of pages."""
        keys = keys_of_one_partition(len(self.testers))
        for key, body in packed_rows(rows_of_pages(pages, keys)):
            assert self.testers[key].test(key, [Row(shard=key, events=body)]) == []

    def batch(self, log: Sequence[Recorded], pieces: int = 1) -> list[Row]:
        """Play one micro-batch, and return the operators' rows."""
        rows = rows_of(log, pieces, len(self.testers))
        made = [
            row
            for shard, tester in enumerate(self.testers)
            # In the query each shard has its own Spark partition, which gets its keys in order.
            for key in (SHARED, shard)
            for row in tester.test(key, [Row(shard=key, events=body) for to, body in rows if to == key])
        ]
        self.log.write(row.outcome for row in made)
        return made
