"""The one stateful operator: a shard of topics, stepped by the rules."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle

from isrflow.bus.kafka.places import placed
from isrflow.controller_logic.guard import guarded_step
from isrflow.state.cluster import Cluster, State
from isrflow.state.codec import decode_cluster, encode_cluster
from isrflow.state.event_text import decode
from isrflow.state.events import Logged, Progress
from isrflow.state.policy import Policy
from isrflow.state.shard_outcome import CLUSTER_PAGE, ShardOutcome, encode_outcome
from isrflow.streaming.fan_out import Routed, decode_routed
from isrflow.streaming.paged_topics import PagedTopics

SCHEMA = "shard INT, seq LONG, outcome BINARY"
INITIAL_SCHEMA = "shard INT, page INT, body BINARY"
_PROGRESS = Progress()


class SparkPages:
    """Keep pages in a Spark map state."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def load(self, page: int) -> bytes | None:
        value = self._state.getValue((page,))
        return None if value is None else bytes(value[0])

    def load_all(self) -> Iterable[tuple[int, bytes]]:
        for key, value in self._state.iterator():
            yield key[0], bytes(value[0])

    def store(self, page: int, body: bytes) -> None:
        self._state.updateValue((page,), (body,))


class ShardOperator(StatefulProcessor):
    """Step one shard a batch: gather its events, put them in order, decide, store what changed."""

    def __init__(self, shards: int, pages: int, policy: Policy, overrides: dict[str, str]) -> None:
        self._shards = shards
        self._page_count = pages
        self._policy = policy
        self._overrides = overrides

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._cluster = handle.getValueState("cluster", "body BINARY")
        self._pages = SparkPages(handle.getMapState("pages", "page INT", "body BINARY"))

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        """Take one page of the bus's image, from which a new checkpoint starts."""
        if initialState.page == CLUSTER_PAGE:
            self._cluster.update((bytes(initialState.body),))
        else:
            self._pages.store(initialState.page, bytes(initialState.body))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        shard = int(key[0])
        state = self._state(shard)
        events = _in_order(rows, state.cluster.seq)
        outcome = guarded_step(state, events, self._policy, overrides=self._overrides)
        topics, cluster = outcome.state.topics, encode_cluster(outcome.state.cluster)
        assert isinstance(topics, PagedTopics)
        pages = topics.changed_pages(outcome.changes)
        for page, body in pages:
            self._pages.store(page, body)
        self._cluster.update((cluster,))
        made = ShardOutcome(
            shard=shard,
            seq=outcome.state.cluster.seq,
            parts=outcome.parts,
            pages=[*pages, (CLUSTER_PAGE, cluster)],
        )
        yield Row(shard=shard, seq=made.seq, outcome=encode_outcome(made))

    def _state(self, shard: int) -> State:
        stored = self._cluster.get()
        cluster = Cluster(shard=shard, shards=self._shards) if stored is None else decode_cluster(bytes(stored[0]))
        return State(cluster, PagedTopics(self._pages, self._shards, self._page_count))

    def close(self) -> None:
        pass


def _in_order(rows: Iterator[Row], before: int) -> list[Logged]:
    """Gather a group's rows, which come in no order; ``before`` is the last event that the state has taken in."""
    routed = [r for row in rows for r in decode_routed(bytes(row.events))]
    routed.sort(key=lambda r: r.seq)
    return [_logged(r, placed(r.seq, before)) for r in routed]


def _logged(routed: Routed, seq: int) -> Logged:
    if routed.raw is None:
        return Logged(seq, routed.clock_ms, _PROGRESS, b"")
    return Logged(seq, routed.clock_ms, decode(routed.raw), routed.raw, routed.entered_ms, routed.is_claim)
