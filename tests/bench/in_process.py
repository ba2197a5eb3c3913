"""CPU by layer: the operators and the sink in one process, on dictionaries in the place of Spark's state stores.

    make bench-layers ARGS="[--partitions N] [--runs N] [--shards N] [--pages N] [--json FILE]"

A step goes the whole way: events into a SQLite bus, fan-out, every shard's operator, and the commit. What Spark adds is
not in it. Figures are CPU seconds, the lowest of several runs, because other work on a machine can only add to them.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.image import read_image
from conf.settings import Settings
from sinks.decision_log import DecisionLog
from state.policy import Policy
from streaming.fan_out import SHARED, fan_out
from streaming.shard import ShardOperator
from streaming.sources import event_rows
from tests.bench.layers import REST, Layers
from tests.bench.load import Load

LAYERS = {
    "rules": ("controller_logic.guard:step",),
    "decisions checked and to JSON": ("controller_logic.guard:_checked", "controller_logic.guard:part_of"),
    "pages decoded": ("streaming.paged_topics:_read",),
    "pages encoded": ("streaming.paged_topics:encode_slices",),
    "outcomes packed": ("streaming.shard:rows_of", "sinks.decision_log:outcomes_of"),
    "merged and numbered": ("sinks.decision_log:number",),
    "SQLite: state and decisions": ("bus.embedded:EmbeddedBus.commit",),
    "events decoded, fanned out": ("tests.bench.in_process:fanned_out",),
    "SQLite: events": ("bus.embedded:EmbeddedBus.publish_own", "bus.embedded:EmbeddedBus.read"),
}
WARM_UP_PARTITIONS = 1_000
SESSION_MS = Policy().broker_session_timeout_ms


class _Value:
    """A value state."""

    def __init__(self) -> None:
        self._held: Any = None

    def get(self) -> Any:
        return self._held

    def update(self, value: Any) -> None:
        self._held = value


class _Map:
    """A map state."""

    def __init__(self) -> None:
        self._held: dict[Any, Any] = {}

    def getValue(self, key: Any) -> Any:
        return self._held.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self._held[key] = value

    def iterator(self) -> Iterator[tuple[Any, Any]]:
        return iter(self._held.items())


class _Handle:
    """The states of one shard."""

    def getValueState(self, name: str, schema: Any, *given: Any) -> _Value:
        return _Value()

    def getMapState(self, name: str, key: Any, value: Any, *given: Any) -> _Map:
        return _Map()


class _Row:
    """A row as Spark hands it to the operator."""

    def __init__(self, events: bytes) -> None:
        self.events = events


def fanned_out(entries: Sequence[Any], shards: int) -> list[tuple[int, bytes]]:
    """Fan a batch out as the query does."""
    batches = list(fan_out(iter([event_rows.rows_of(entries)]), shards=shards))
    return [row for one in batches for row in zip(*(column.to_pylist() for column in one.columns), strict=True)]


class InProcess:
    """An engine without Spark, which decides all events that it is given in one batch."""

    def __init__(self, folder: Path, load: Load, shards: int, pages: int) -> None:
        self.load = load
        self.bus = EmbeddedBus(folder / "bus.db")
        self._shards = shards
        self._policy = Policy(auto_leader_rebalance_enable=False)
        self._operators = [ShardOperator(shards, pages, self._policy, {}) for _ in range(shards)]
        for operator in self._operators:
            operator.init(cast(StatefulProcessorHandle, _Handle()))
        self._time_ms = now_ms()
        claim = self.bus.claim("bench", {}, self._time_ms)
        self._epoch = claim.controller_epoch
        self._log = DecisionLog(self.bus, self._epoch)
        self.epochs: dict[int, int] = {}

    def event(self, kind: str, **fields: Any) -> bytes:
        """Write an event at the present of this engine."""
        return msgspec.json.encode({"kind": kind, "time_ms": self._time_ms, **fields})

    def tick(self, after_ms: int = 1) -> bytes:
        """Move the present on, and write the tick that says so."""
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
        for shard, operator in enumerate(self._operators):
            for key in (SHARED, shard):
                some = [_Row(body) for to, body in rows if to == key]
                made += list(operator.handleInputRows((key,), cast(Iterator[Row], iter(some)), None)) if some else []
        written = self._log.write(row.outcome for row in made)
        return len(written.decisions) if written else 0

    @property
    def everyone(self) -> range:
        return range(1, self.load.brokers + 1)


def create(engine: InProcess) -> list[bytes]:
    """Register and unfence all brokers, and create all topics."""
    first = engine.bus.last_seq()
    engine.epochs = {broker: first + broker for broker in engine.everyone}
    return [
        *(engine.event("broker_register", broker=broker, incarnation="i") for broker in engine.everyone),
        engine.tick(),
        *engine.beats(engine.everyone),
        *(
            engine.event(
                "create_topic", topic=topic, partitions=size, replication_factor=engine.load.replication_factor
            )
            for topic, size in engine.load.topics
        ),
    ]


def lose(engine: InProcess) -> list[bytes]:
    """End one broker's session at the last tick of the batch."""
    others = [broker for broker in engine.everyone if broker != engine.load.victim]
    return [engine.tick(SESSION_MS - 1_000), *engine.beats(others), engine.tick(2_000)]


def back(engine: InProcess) -> list[bytes]:
    """Unfence the lost broker."""
    return engine.beats([engine.load.victim])


def shut_down(engine: InProcess) -> list[bytes]:
    """Begin a controlled shutdown."""
    victim = engine.load.victim
    return [engine.event("controlled_shutdown", broker=victim, broker_epoch=engine.epochs[victim])]


def idle(engine: InProcess) -> list[bytes]:
    """Hear every broker, and tick."""
    return [*engine.beats(engine.everyone), engine.tick()]


def one_isr(engine: InProcess) -> list[bytes]:
    """Take the last member out of one partition's ISR."""
    topic = read_image(engine.bus.image()).topics[0]
    held = topic.partitions[0]
    asked = {"partition_epoch": held.partition_epoch, "leader_epoch": held.leader_epoch, "isr": held.isr[:-1]}
    leader = {"broker": held.leader, "broker_epoch": engine.epochs[held.leader]}
    return [engine.event("alter_isr", topic=topic.topic, partition=0, **leader, **asked)]


def offsets(engine: InProcess) -> list[bytes]:
    """Report a log-end offset of each replica of some partitions, and tick, which moves the watermarks."""
    topics = read_image(engine.bus.image()).topics
    places = [(topic.topic, number, held) for topic in topics for number, held in enumerate(topic.partitions)]
    reports = [
        engine.event(
            "log_end_offset",
            topic=topic,
            partition=number,
            broker=broker,
            leader_epoch=held.leader_epoch,
            log_end_offset=7,
        )
        for topic, number, held in places[: engine.load.storm]
        for broker in held.replicas
    ]
    return [*reports, engine.tick()]


STEPS: dict[str, Callable[[InProcess], list[bytes]]] = {
    "create": create,
    "idle": idle,
    "one ISR": one_isr,
    "log-end offsets": offsets,
    "lose a broker": lose,
    "it returns": back,
    "shut it down": shut_down,
}


class Cost(msgspec.Struct, frozen=True):
    """What one step cost, in CPU seconds by layer."""

    step: str
    decisions: int
    layers_s: dict[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.layers_s.values())


def run_once(load: Load, shards: int, pages: int) -> list[Cost]:
    """Play all steps on a fresh engine."""
    layers = Layers(LAYERS)
    costs = []
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as folder:
        engine = InProcess(Path(folder), load, shards, pages)
        try:
            for name, step in STEPS.items():
                events = step(engine)
                with layers.measured() as spent:
                    decisions = engine.play(events)
                costs.append(Cost(name, decisions, dict(spent)))
        finally:
            engine.bus.close()
    return costs


def measure(load: Load, runs: int, shards: int, pages: int) -> list[Cost]:
    """Play all steps several times, and keep the cheapest run of each step."""
    run_once(Load(partitions=WARM_UP_PARTITIONS), shards, pages)
    played = [run_once(load, shards, pages) for _ in range(runs)]
    return [min(same, key=lambda cost: cost.total_s) for same in zip(*played, strict=True)]


def table(load: Load, costs: Sequence[Cost]) -> Iterator[str]:
    """Write the costs as a table with a column for each step."""
    yield f"CPU seconds in process, {load.partitions:,} partitions, {load.brokers} brokers:"
    yield ""
    yield f"| layer | {' | '.join(cost.step for cost in costs)} |"
    yield f"|---|{'---|' * len(costs)}"
    for layer in (*LAYERS, REST):
        yield f"| {layer} | {' | '.join(f'{cost.layers_s.get(layer, 0.0):.3f}' for cost in costs)} |"
    yield f"| **together** | {' | '.join(f'**{cost.total_s:.3f}**' for cost in costs)} |"
    yield f"| decisions | {' | '.join(f'{cost.decisions:,}' for cost in costs)} |"
    each = [cost.total_s / max(cost.decisions, 1) * 1e6 for cost in costs]
    yield f"| µs a decision | {' | '.join(f'{micros:.1f}' for micros in each)} |"


def main(*given: str) -> None:
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="layers", description="Measure CPU by layer, in one process without Spark.")
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shards", type=int, default=defaults.shards)
    parser.add_argument("--pages", type=int, default=defaults.pages)
    parser.add_argument("--json", type=Path, help="a file to write the figures to")
    options = parser.parse_args(given)
    load = Load(partitions=options.partitions)
    costs = measure(load, options.runs, options.shards, options.pages)
    print("\n".join(table(load, costs)))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(costs)))
