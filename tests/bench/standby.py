"""The time from the SIGKILL of the active engine to the first decision of its standby."""

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from bus.embedded import EmbeddedBus
from tests.bench.load import Took
from tests.bench.report import Figure
from tests.bench.session import measured
from tests.support.engine import STANDBY, START_TIMEOUT_S, Engine, decided, encoded
from tests.support.waiting import wait_until

KILLS = 5
BROKERS = 10
PARTITIONS_PER_TOPIC = 100
# Nobody sends heartbeats while engines are killed.
SESSION_TIMEOUT_MS = 3_600_000
# The default of controller.standby.timeout.ms, and the shortest silence that two tick.idle.interval.ms allow.
TIMEOUTS_MS = (3_000, 1_000)


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="standby", description="Measure how soon a standby decides.")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many active engines are killed")
    parser.add_argument("--timeouts", default=",".join(map(str, TIMEOUTS_MS)), help="in milliseconds, with commas")
    parser.add_argument("--partitions", type=int, default=0, help="in topics of 100")
    options = parser.parse_args(given)
    timeouts_ms = [int(text) for text in options.timeouts.split(",")]
    measured(
        "standby",
        given,
        lambda: [measure(timeout_ms, options.kills, options.partitions) for timeout_ms in timeouts_ms],
    )


def measure(timeout_ms: int, kills: int, partitions: int) -> Figure:
    """Kill the active engine again and again, each time with a standby that has waited for some seconds."""
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name:
        folder = Path(name)
        bus = EmbeddedBus(folder / "bus.db")
        logs = (folder / f"engine-{number}.log" for number in itertools.count())
        engines: list[Engine] = []

        def started() -> Engine:
            settings = f"controller.standby.timeout.ms={timeout_ms}", f"broker.session.timeout.ms={SESSION_TIMEOUT_MS}"
            engines.append(Engine(folder, *settings, command=STANDBY, log=next(logs)))
            return engines[-1]

        try:
            active = started()
            active.wait_ready(bus)
            _create(bus, partitions)
            took = []
            for _ in range(kills):
                standby = started()
                wait_until(lambda waiting=standby: _stands_by(waiting), "the standby", START_TIMEOUT_S)
                took.append(Took(wall_s=taken_over_s(bus, active, standby), cpu_s=0.0, changes=1))
                active = standby
        finally:
            for engine in engines:
                engine.kill()
            bus.close()
    return Figure("standby", partitions, f"killed, silence of {timeout_ms} ms", took)


def _create(bus: EmbeddedBus, partitions: int) -> None:
    """Register brokers and create topics, and wait until that is decided."""
    if not partitions:
        return
    for broker in range(1, BROKERS + 1):
        seq = bus.publish([encoded("broker_register", broker=broker, incarnation=f"incarnation-{broker}")])
        beat = encoded("broker_heartbeat", broker=broker, broker_epoch=seq, want_fence=False, want_shutdown=False)
        decided(bus, bus.publish([beat]))
    topics = range(partitions // PARTITIONS_PER_TOPIC)
    sizes = {"partitions": PARTITIONS_PER_TOPIC, "replication_factor": 3}
    decided(bus, bus.publish([encoded("create_topic", topic=f"topic-{topic}", **sizes) for topic in topics]))


def _stands_by(engine: Engine) -> bool:
    return "standing by" in engine.log.read_text()


def taken_over_s(bus: EmbeddedBus, active: Engine, standby: Engine) -> float:
    """Kill the active engine, and wait until an event that came after that is decided."""
    began_s = time.monotonic()
    active.kill()
    decided(bus, bus.publish([encoded("delete_topic", topic="awaited")]), engine=standby)
    return time.monotonic() - began_s
