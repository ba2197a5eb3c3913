"""The one stateful operator: a shard of topics, stepped by the rules.

The problem: the obvious key of the state machine is a topic-partition, and there are hundreds of thousands of them. But
Spark calls a Python operator once for each key, and each call costs about a millisecond. And most events, such as
heartbeats and ticks, concern every partition.

The insight: the key can be a shard, a fixed share of the topics. A shard's state is the broker table and a map of pages
(``paged_topics``). Every shard has the whole broker table. ``step`` is deterministic, so all of them reach the same
brokers, and only one of them writes the decisions about brokers.

    shared key      heartbeats, ticks, …  ─► SharedEvents: read once, kept for the keys that follow
    key of shard 0  events of its topics  ─► with the shared events, by seq ─► step ─► outcome of shard 0
    key of shard 1  events of its topics  ─► with the shared events, by seq ─► step ─► outcome of shard 1

Spark gives a key's rows in no order, and a batch may be repeated after a kill. So the operator sorts by seq, and the
rules skip what the state already contains.

Spark has two values for each shard: the cluster part, and all pages together. Each call to Spark's state takes as long
as deciding about ten partitions, and a storm changes nearly every page. So the pages are read by one call, if an event
needs any, and written by one call, if any has changed.

Rejected: a key for each partition, because of the cost of a call. A second operator in front that decides about brokers
gives the same decisions, but a second stateful stage makes each batch half to three quarters longer.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from bus.interface import Page
from conf.garbage import without_collections
from controller_logic.batch import Remembered
from controller_logic.deadline import expires_ms
from controller_logic.guard import guarded_step
from sinks.outcome_rows import rows_of
from state.cluster import Changes, Cluster, State
from state.event_text import decode
from state.events import Logged, Progress
from state.policy import Policy
from state.shard_outcome import CLUSTER_PAGE, ShardOutcome
from state.stored.codec import decode_cluster, encode_cluster
from streaming.fan_out import PackedRow, Routed, decode_packed
from streaming.keys import shard_of_key
from streaming.paged_topics import Bodies, PagedTopics

SCHEMA = "shard INT, seq LONG, outcome BINARY"
INITIAL_SCHEMA = "shard INT, pages BINARY"
_PROGRESS = Progress()
# Not as text, which Spark would parse in every task.
_BODY = StructType([StructField("body", BinaryType())])
# All pages of a shard by number.
_encode_pages = msgspec.msgpack.Encoder().encode
_decode_pages = msgspec.msgpack.Decoder(dict[int, bytes]).decode


def initial_rows(pages: Iterable[Page], keys: Sequence[int]) -> list[tuple[int, bytes]]:
    """Return the rows of ``INITIAL_SCHEMA`` for a bus's image. ``keys`` has the key of each shard."""
    of_shards: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    for page in pages:
        of_shards[page.shard][page.page] = page.body
    return [(keys[shard], _encode_pages(held)) for shard, held in of_shards.items()]


class ShardOperator(StatefulProcessor):
    """The operator that steps one shard a batch: gather its events, order them, decide, store what changed."""

    def __init__(self, shards: int, pages: int, policy: Policy, overrides: dict[str, str]) -> None:
        self._shared = SharedEvents()
        # What a shard has its rules remember for those after it.
        self._remembered = Remembered()
        # What ends with the task. Spark pickles the operator before ``init``.
        self._task: ExitStack | None = None
        self._shards = shards
        self._page_count = pages
        self._policy = policy
        self._overrides = overrides

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Begin a task, which is one batch of all shards of a Spark partition."""
        # Off for the whole task: each time the collector is turned on, it walks all events that the shards share.
        self._task = ExitStack()
        self._task.enter_context(without_collections())
        self._cluster = handle.getValueState("cluster", _BODY)
        self._pages = handle.getValueState("pages", _BODY)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        """Store a shard's pages of the bus's image, from which a new checkpoint starts."""
        self._take_in(_decode_pages(bytes(initialState.pages)))

    def _take_in(self, pages: dict[int, bytes]) -> None:
        if (cluster := pages.pop(CLUSTER_PAGE, None)) is not None:
            self._cluster.update((cluster,))
        if pages:
            self._pages.update((_encode_pages({**self._load(), **pages}),))

    def _load(self) -> Bodies:
        stored = self._pages.get()
        return {} if stored is None else _decode_pages(bytes(stored[0]))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Step one shard over the batch, or take in the events that the shards after it share.

        A job that stands by gets batches of pages. They are stored, and nothing is decided.
        """
        shard = shard_of_key(int(key[0]), self._shards)
        packed = [decode_packed(bytes(row.events)) for row in rows]
        if shard is None:
            self._shared.take(packed)
            return
        if stored := {number: body for one in packed for number, body in one.pages}:
            self._take_in(stored)
            return
        events = self._gathered(packed)
        outcome = guarded_step(
            self._state(shard), events, self._policy, overrides=self._overrides, remembered=self._remembered
        )
        pages = self._stored(outcome.state, outcome.changes)
        ends_ms = min((ends for one in events if (ends := expires_ms(one)) is not None), default=None)
        for row in rows_of(ShardOutcome(shard, outcome.state.cluster.seq, outcome.parts, pages, ends_ms)):
            yield Row(shard=shard, seq=outcome.state.cluster.seq, outcome=row)

    def _stored(self, state: State, changes: Changes) -> list[tuple[int, bytes]]:
        """Store what changed, and return it as pages."""
        topics, cluster = state.topics, encode_cluster(state.cluster)
        assert isinstance(topics, PagedTopics)
        pages = topics.changed_pages(changes, state.cluster.level)
        if pages:
            self._pages.update((_encode_pages({**topics.bodies, **dict(pages)}),))
        self._cluster.update((cluster,))
        return [*pages, (CLUSTER_PAGE, cluster)]

    def _gathered(self, packed: Sequence[PackedRow]) -> list[Logged]:
        """Return a shard's own events and the shared ones in order."""
        own = [_logged(routed) for one in packed for routed in one.routed]
        return sorted(own + self._shared.taken(sum(one.shared_count for one in packed)), key=_seq)

    def _state(self, shard: int) -> State:
        stored = self._cluster.get()
        cluster = Cluster(shard=shard, shards=self._shards) if stored is None else decode_cluster(bytes(stored[0]))
        return State(cluster, PagedTopics(self._load, self._shards, self._page_count))

    def close(self) -> None:
        """End the task."""
        self._shared, self._remembered = SharedEvents(), Remembered()
        if self._task is not None:
            self._task.close()


class SharedEvents:
    """The events of a batch that concern all shards, read once for the shards of one Spark partition.

    The row of these events comes before the rows of shards, because Spark sorts a partition by key and processes the
    keys in that order.
    """

    def __init__(self) -> None:
        self._events: list[Logged] = []

    def take(self, packed: Iterable[PackedRow]) -> None:
        self._events = [_logged(routed) for one in packed for routed in one.routed]

    def taken(self, count: int) -> list[Logged]:
        """Return the events of this batch. Raises ``RuntimeError`` if some of the ``count`` are missing."""
        if not count:
            return []
        if len(self._events) != count:
            raise RuntimeError(f"only {len(self._events)} of {count} events for all shards have reached this one")
        return self._events


def _logged(routed: Routed) -> Logged:
    if routed.raw is None:
        return Logged(routed.seq, routed.clock_ms, _PROGRESS, b"")
    event = decode(routed.raw)
    return Logged(routed.seq, routed.clock_ms, event, routed.raw, routed.entered_ms, routed.is_claim, routed.found_ms)


def _seq(event: Logged) -> int:
    return event.seq
