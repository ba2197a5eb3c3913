"""Measure the time from the SIGKILL of the active engine to the first decision of its standby.

On one machine the standby takes over the active engine's checkpoint. With ``--kafka`` both engines have checkpoints of
their own, as on two machines, and share a bus on Kafka.
"""

import argparse
import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import buses
from bench.load import Load, Took, creations
from bench.options import add_cluster, loads
from bench.report import Figure, measured
from bus.interface import Bus
from bus.open_bus import open_bus
from tests.support.engine import STANDBY, START_TIMEOUT_S, Engine, decided, encoded
from tests.support.waiting import wait_until

KILLS = 5
# No broker sends heartbeats while engines are killed.
SESSIONS = "broker.session.timeout.ms=3600000"
# The default of controller.standby.timeout.ms, and the shortest silence that two tick.idle.interval.ms allow.
TIMEOUTS_MS = (3_000, 1_000)
# A standby begins to follow the state when a checkpoint has been free for three seconds.
STOOD_BY_S = 8.0


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="standby", description="Measure how soon a standby decides.")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many active engines are killed")
    parser.add_argument("--timeouts", default=",".join(map(str, TIMEOUTS_MS)), help="in milliseconds, with commas")
    add_cluster(parser, partitions="0")
    parser.add_argument("--kafka", action="store_true", help="on a bus on Kafka, with checkpoints of their own")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of both engines")
    options = parser.parse_args(given)
    timeouts_ms = [int(text) for text in options.timeouts.split(",")]
    measured(
        "standby",
        given,
        lambda: [
            measure(timeout_ms, options.kills, load, options.kafka, options.set)
            for load in loads(options)
            for timeout_ms in timeouts_ms
        ],
    )


def measure(timeout_ms: int, kills: int, load: Load, on_kafka: bool, others: Sequence[str] = ()) -> Figure:
    """Kill the active engine again and again, each time with a standby that has waited for some seconds."""
    engines: list[Engine] = []
    make_bus = buses.on_kafka if on_kafka else buses.in_a_file
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name, make_bus(Path(name)) as url:
        places = (Path(name) / f"engine-{number}" for number in itertools.count())
        bus = open_bus(url)

        def started() -> Engine:
            place = next(places)
            place.mkdir()
            settings = [f"bus={url}", f"controller.standby.timeout.ms={timeout_ms}", SESSIONS, *others]
            if not on_kafka:
                settings.append(f"checkpoint.dir={name}/checkpoint")
            engines.append(Engine(place, *settings, command=STANDBY))
            return engines[-1]

        try:
            active = started()
            active.wait_ready(bus)
            _create(bus, load)
            took = []
            for _ in range(kills):
                standby = started()
                wait_until(lambda waiting=standby: _stands_by(waiting), "the standby", START_TIMEOUT_S)
                time.sleep(STOOD_BY_S)
                took.append(Took(wall_s=taken_over_s(bus, active, standby), cpu_s=0.0, changes=1))
                active = standby
        finally:
            for engine in engines:
                engine.kill()
            bus.close()
    where = "with another checkpoint" if on_kafka else "on one machine"
    brokers = load.brokers if load.partitions else 0
    return Figure("standby", load.partitions, f"killed, silence of {timeout_ms} ms, {where}", took, brokers)


def _create(bus: Bus, load: Load) -> None:
    """Register brokers and create topics, and wait until that is decided."""
    if not load.partitions:
        return
    for broker in load.everyone:
        seq = bus.publish([encoded("broker_register", broker=broker, incarnation=f"incarnation-{broker}")])
        beat = encoded("broker_heartbeat", broker=broker, broker_epoch=seq, want_fence=False, want_shutdown=False)
        decided(bus, bus.publish([beat]))
    decided(bus, bus.publish([encoded("create_topic", **fields) for fields in creations(load)]))


def _stands_by(engine: Engine) -> bool:
    return "standing by" in engine.log.read_text()


def taken_over_s(bus: Bus, active: Engine, standby: Engine) -> float:
    """Kill the active engine, and wait until an event that came after that is decided."""
    began_s = time.monotonic()
    active.kill()
    decided(bus, bus.publish([encoded("delete_topic", topic="awaited")]), engine=standby)
    return time.monotonic() - began_s
