"""CPU by layer: each step in one process, from events to decisions, and with ``--gateway`` to the metadata log.

    make bench-layers ARGS="[--partitions N,...] [--brokers N,...] [--placement random] [--runs N] [--shards N]
        [--pages N] [--gateway] [--eligible] [--profile STEP]"

This does not include Spark's cost. Figures are CPU seconds, and the smallest of several runs counts, because other work
on a machine can only add to them.
"""

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bench.events import Asked, isr_requests, one_by_one, places_in, together
from bench.gateway_in_process import GATEWAY_LAYERS, GatewayInProcess
from bench.in_process import InProcess
from bench.layers import REST, Layers
from bench.load import Load, Placement, creations
from bench.options import add_cluster, loads
from brokers.launch.kafka.cluster import random_cluster_id
from bus.image import read_image
from conf.settings import Settings
from state.level import NEWEST_LEVEL
from state.policy import Policy

LAYERS = {
    "rules": ("controller_logic.guard:step",),
    "decisions checked, to JSON": ("controller_logic.guard:_checked",),
    "pages decoded": ("streaming.paged_topics:_read",),
    "pages encoded": ("streaming.paged_topics:encode_slices", "streaming.paged_topics:_slices"),
    "outcomes packed": ("streaming.shard:rows_of", "sinks.decision_log:outcomes_of"),
    "merged and numbered": ("sinks.decision_log:numbered_runs",),
    "SQLite: state and decisions": ("bus.embedded:EmbeddedBus.commit",),
    "events decoded, fanned out": ("bench.in_process:fanned_out",),
    "SQLite: events": ("bus.embedded:EmbeddedBus.publish_own", "bus.embedded:EmbeddedBus.read"),
}
PARTITIONS = "100000"
WARM_UP_PARTITIONS = 1_000
PROFILED_MAX = 30
SESSION_MS = Policy().broker_session_timeout_ms


def create(engine: InProcess) -> list[bytes]:
    """Register and unfence all brokers, and create all topics."""
    first = engine.bus.last_seq()
    engine.epochs = {broker: first + broker for broker in engine.load.everyone}
    return [
        *(_registration(engine, broker) for broker in engine.load.everyone),
        engine.event("raise_level", level=NEWEST_LEVEL),
        engine.tick(),
        *engine.beats(engine.load.everyone),
        *(engine.event("create_topic", **fields) for fields in creations(engine.load)),
    ]


def _registration(engine: InProcess, broker: int) -> bytes:
    uuids = {"incarnation": random_cluster_id(), "log_dirs": [random_cluster_id()]}
    listeners = [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9_092, "protocol": "PLAINTEXT"}]
    features = [{"name": "metadata.version", "min_version": 7, "max_version": 27}]
    return engine.event("broker_register", broker=broker, listeners=listeners, features=features, **uuids)


def lose(engine: InProcess) -> list[bytes]:
    """End one broker's session at the last tick of the batch."""
    others = [broker for broker in engine.load.everyone if broker != engine.load.victim]
    return [engine.tick(SESSION_MS - 1_000), *engine.beats(others), engine.tick(2_000)]


def back(engine: InProcess) -> list[bytes]:
    """Unfence the lost broker."""
    return engine.beats([engine.load.victim])


def shut_down(engine: InProcess) -> list[bytes]:
    """Begin a controlled shutdown."""
    victim = engine.load.victim
    return [engine.event("controlled_shutdown", broker=victim, broker_epoch=engine.epochs[victim])]


def idle(engine: InProcess) -> list[bytes]:
    """Receive a heartbeat of every broker, and a tick."""
    return [*engine.beats(engine.load.everyone), engine.tick()]


def one_isr(engine: InProcess) -> list[bytes]:
    """Remove the last member from one partition's ISR."""
    topic = read_image(engine.bus.image()).topics[0]
    held = topic.partitions[0]
    asked = {"partition_epoch": held.partition_epoch, "leader_epoch": held.leader_epoch, "isr": held.isr[:-1]}
    leader = {"broker": held.leader, "broker_epoch": engine.epochs[held.leader]}
    return [engine.event("alter_isr", topic=topic.topic, partition=0, **leader, **asked)]


def isrs(engine: InProcess) -> list[bytes]:
    """Remove the last member from the ISR of many partitions, in one request of each leader."""
    topics = read_image(engine.bus.image()).topics
    places = [(topic.topic, held) for topic in topics for held in topic.partitions]
    asked = [Asked(topic, held, held.isr[:-1]) for topic, held in places[-engine.load.storm :] if len(held.isr) > 1]
    return isr_requests(asked, engine.epochs, engine.event)


def offsets(engine: InProcess) -> list[bytes]:
    """Report a log-end offset of each replica of some partitions, and tick, which moves the watermarks."""
    places = places_in(read_image(engine.bus.image()).topics, engine.load.storm)
    return [*together(places, 7, engine.epochs, engine.event), engine.tick()]


def single_offsets(engine: InProcess) -> list[bytes]:
    """Report as many log-end offsets, each a bit higher and in an event of its own."""
    places = places_in(read_image(engine.bus.image()).topics, engine.load.storm)
    return [*one_by_one(places, 8, engine.event), engine.tick()]


STEPS: dict[str, Callable[[InProcess], list[bytes]]] = {
    "create": create,
    "idle": idle,
    "one ISR": one_isr,
    "log-end offsets": offsets,
    "one by one": single_offsets,
    "lose a broker": lose,
    "it returns": back,
    "shut it down": shut_down,
    # This step is the last one, because after it a lost broker would be in fewer ISRs.
    "ISR changes": isrs,
}


class Cost(msgspec.Struct, frozen=True):
    """What one step cost, in CPU seconds by layer."""

    step: str
    decisions: int
    layers_s: dict[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.layers_s.values())

    @property
    def each_us(self) -> float:
        """The cost of a decision in microseconds."""
        return self.total_s / max(self.decisions, 1) * 1e6


class Measured(msgspec.Struct, frozen=True):
    """What the steps of a load cost."""

    partitions: int
    brokers: int
    placement: Placement
    costs: list[Cost]
    eligible: bool = False


def run_once(
    load: Load, shards: int, pages: int, *, gateway: bool = False, profile: tuple[str, cProfile.Profile] | None = None
) -> list[Cost]:
    """Play all steps on a new engine, and with ``gateway`` also on a gateway that follows it."""
    layers = Layers(LAYERS | (GATEWAY_LAYERS if gateway else {}))
    costs = []
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as folder:
        engine = InProcess(Path(folder), load, shards, pages)
        follower = GatewayInProcess(Path(folder), engine) if gateway else None
        try:
            for name, step in STEPS.items():
                events = step(engine)
                if profile is not None and profile[0] == name:
                    with profile[1]:
                        engine.play(events)
                    continue
                with layers.measured() as spent:
                    decisions = engine.play(events)
                costs.append(Cost(name, decisions, dict(spent)))
        finally:
            if follower is not None:
                follower.close()
            engine.bus.close()
    return costs


def measure(
    several: Sequence[Load], runs: int, shards: int, pages: int, *, gateway: bool = False
) -> Iterator[list[Cost]]:
    """Play all steps of each load several times, and keep the cheapest run of each step.

    Runs alternate between loads, so that a slow minute of the machine affects all alike.
    """
    run_once(Load(partitions=WARM_UP_PARTITIONS), shards, pages, gateway=gateway)
    rounds = [[run_once(load, shards, pages, gateway=gateway) for load in several] for _ in range(runs)]
    for played in zip(*rounds, strict=True):
        yield [min(same, key=lambda cost: cost.total_s) for same in zip(*played, strict=True)]


def table(load: Load, costs: Sequence[Cost]) -> Iterator[str]:
    """Write the costs as a table with a column for each step."""
    placed = f"{load.placement} placement{', eligible leader replicas' if load.eligible else ''}"
    yield f"CPU seconds in process, {load.partitions:,} partitions, {load.brokers} brokers, {placed}:"
    yield ""
    yield f"| layer | {' | '.join(cost.step for cost in costs)} |"
    yield f"|---|{'---|' * len(costs)}"
    for layer in dict.fromkeys((*LAYERS, *(layer for cost in costs for layer in cost.layers_s if layer != REST), REST)):
        yield f"| {layer} | {' | '.join(f'{cost.layers_s.get(layer, 0.0):.3f}' for cost in costs)} |"
    yield f"| **together** | {' | '.join(f'**{cost.total_s:.3f}**' for cost in costs)} |"
    yield f"| decisions | {' | '.join(f'{cost.decisions:,}' for cost in costs)} |"
    yield f"| µs a decision | {' | '.join(f'{cost.each_us:.1f}' for cost in costs)} |"


def comparison(measured: Sequence[Measured]) -> Iterator[str]:
    """Write a table with a row for each load: the cost of a decision in each step."""
    yield "µs of CPU a decision:"
    yield ""
    yield f"| partitions | brokers | ELR | {' | '.join(cost.step for cost in measured[0].costs)} |"
    yield f"|---|---|---|{'---|' * len(measured[0].costs)}"
    for one in measured:
        figures = " | ".join(f"{cost.each_us:.1f}" for cost in one.costs)
        yield f"| {one.partitions:,} | {one.brokers} | {'on' if one.eligible else 'off'} | {figures} |"


def main(*given: str) -> None:
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="layers", description="Measure CPU by layer, in one process without Spark.")
    add_cluster(parser, PARTITIONS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shards", type=int, default=defaults.shards)
    parser.add_argument("--pages", type=int, default=defaults.pages)
    parser.add_argument("--gateway", action="store_true", help="also write the metadata log, as a gateway does")
    parser.add_argument(
        "--eligible",
        action="store_true",
        help="play each load with and without eligible leader replicas",
    )
    parser.add_argument("--profile", choices=list(STEPS), help="print where the time of one step goes, and no table")
    parser.add_argument("--json", type=Path, help="a file to write the figures to")
    options = parser.parse_args(given)
    played = loads(options)
    if options.eligible:
        played = [replace(load, eligible=on, min_isr=2) for load in played for on in (False, True)]
    if options.profile:
        profile = cProfile.Profile(time.process_time)
        for load in played:
            run_once(load, options.shards, options.pages, gateway=options.gateway, profile=(options.profile, profile))
        pstats.Stats(profile).sort_stats("tottime").print_stats(PROFILED_MAX)
        return
    measured = []
    found = measure(played, options.runs, options.shards, options.pages, gateway=options.gateway)
    for load, costs in zip(played, found, strict=True):
        measured.append(Measured(load.partitions, load.brokers, load.placement, costs, load.eligible))
        print("\n".join(table(load, costs)), end="\n\n", flush=True)
    if len(measured) > 1:
        print("\n".join(comparison(measured)))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(measured)))
