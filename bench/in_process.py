"""An engine in one process: fan-out, operators and sink, with dictionaries in place of Spark's state stores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from bench.load import Load
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from conf.garbage import without_collections
from sinks.decision_log import DecisionLog
from state.policy import Policy
from streaming.fan_out import rows_of_events
from streaming.keys import SHARED, keys_of
from streaming.shard import ShardOperator


class _Handle:
    """The states of all shards. As in Spark, a state belongs to the current shard."""

    def __init__(self) -> None:
        self.shard = SHARED

    def getValueState(self, name: str, schema: Any, *given: Any) -> "_Value":
        return _Value(self)


class _Value:
    """A value state."""

    def __init__(self, handle: _Handle) -> None:
        self._handle = handle
        self._held: dict[int, Any] = {}

    def get(self) -> Any:
        return self._held.get(self._handle.shard)

    def update(self, value: Any) -> None:
        self._held[self._handle.shard] = value


class _Row:
    """A row as Spark hands it to the operator."""

    def __init__(self, events: bytes) -> None:
        self.events = events


def fanned_out(entries: Sequence[Any], shards: int) -> list[tuple[int, bytes]]:
    """Fan a batch out as the query does."""
    batches = list(rows_of_events(entries, keys_of(shards, 1, hash)))
    return [row for one in batches for row in zip(*(column.to_pylist() for column in one.columns), strict=True)]


class InProcess:
    """An engine without Spark, which decides all events that it is given in one batch."""

    def __init__(self, folder: Path, load: Load, shards: int, pages: int) -> None:
        self.load = load
        self.bus = EmbeddedBus(folder / "bus.db")
        self._shards = shards
        self._policy = Policy(
            auto_leader_rebalance_enable=False,
            min_insync_replicas=load.min_isr,
            eligible_leader_replicas_version=int(load.eligible),
        )
        self._handle = _Handle()
        self._operator = ShardOperator(shards, pages, self._policy, {})
        self._operator.init(cast(StatefulProcessorHandle, self._handle))
        # It would keep the garbage collector off for everything else in this process.
        self._operator.close()
        self._time_ms = now_ms()
        claim = self.bus.claim("bench", {}, self._time_ms)
        self._epoch = claim.controller_epoch
        self._log = DecisionLog(self.bus, self._epoch)
        # Each broker's epoch.
        self.epochs: dict[int, int] = {}
        # Called after each batch.
        self.followers: list[Callable[[], None]] = []

    def event(self, kind: str, **fields: Any) -> bytes:
        """Write an event with this engine's present time."""
        return msgspec.json.encode({"kind": kind, "time_ms": self._time_ms, **fields})

    def tick(self, after_ms: int = 1) -> bytes:
        """Move time on, and write the tick for it."""
        self._time_ms += after_ms
        return self.event("tick", controller_epoch=self._epoch)

    def beats(self, brokers: Iterable[int]) -> list[bytes]:
        return [
            self.event(
                "broker_heartbeat",
                broker=broker,
                broker_epoch=self.epochs[broker],
                want_fence=False,
                want_shutdown=False,
            )
            for broker in brokers
        ]

    def play(self, events: Sequence[bytes]) -> int:
        """Publish events, decide them in one batch, and return the number of decisions."""
        self.bus.publish_own(events)
        entries = self.bus.read(self.bus.decided_seq(), self.bus.last_seq())
        rows = fanned_out(entries, self._shards)
        made = []
        with without_collections():
            for key in (SHARED, *range(self._shards)):
                self._handle.shard = key
                some = cast(Iterator[Row], iter([_Row(body) for to, body in rows if to == key]))
                made += list(self._operator.handleInputRows((key,), some, None))
        # As in Spark, nothing is remembered until the next batch.
        self._operator.close()
        written = self._log.write(row.outcome for row in made)
        for follow in self.followers:
            follow()
        return len(written.decisions) if written else 0
