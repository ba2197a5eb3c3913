"""A small cluster for the examples in the commands' help, led by the rules in a thread."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

from bus.embedded import EmbeddedBus
from bus.image import read_image
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until

SESSION_MS = 3_600_000
FILES = {
    "topics.json": {"version": 1, "topics": [{"topic": "orders"}]},
    "plan.json": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]},
    "present.json": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]},
    "elect.json": {"partitions": [{"topic": "orders", "partition": 1}]},
}


def started(folder: Path, *, is_healthy: bool = False) -> RulesEngine:
    """Start an engine on ``folder``/data/bus.db: brokers 1 to 3 serve, 4 is gone, and orders has two partitions.

    If it ``is_healthy``, there is no broker 4.
    """
    for name, document in FILES.items():
        (folder / name).write_text(json.dumps(document))
    path = folder / "data" / "bus.db"
    bus = EmbeddedBus(path)
    engine = RulesEngine()
    engine.start(path, broker_session_timeout_ms=SESSION_MS, tick_idle_interval_ms=500)
    try:
        racks = {1: "r1", 2: "r2", 3: "r3"} | ({} if is_healthy else {4: "r4"})
        seqs = {
            broker: publish(bus, kind="broker_register", broker=broker, incarnation="a", rack=rack)
            for broker, rack in racks.items()
        }
        for broker in (1, 2, 3):
            beat(bus, broker, seqs[broker])
        wait_for(bus, beat(bus, 3, seqs[3]))
        for topic, assignment in (("orders", {"0": [1, 2], "1": [2, 1]}), ("gone-soon", {"0": [1]})):
            publish(bus, kind="create_topic", topic=topic, assignment=assignment)
        wait_for(bus, bus.last_seq())
    finally:
        bus.close()
    return engine


def publish(bus: EmbeddedBus, **event: object) -> int:
    """Publish one event, and return its seq."""
    return bus.publish([json.dumps({"time_ms": 1_000, **event}).encode()])


def beat(bus: EmbeddedBus, broker: int, broker_epoch: int) -> int:
    """Publish a heartbeat, which unfences its broker."""
    wishes = {"want_fence": False, "want_shutdown": False}
    return publish(bus, kind="broker_heartbeat", broker=broker, broker_epoch=broker_epoch, **wishes)


def wait_for(bus: EmbeddedBus, seq: int) -> None:
    """Wait until the engine has decided up to ``seq``."""
    wait_until(lambda: bus.decided_seq() >= seq, f"the decision of seq {seq}")


def said(isrflow: Callable[..., Result], *arguments: str, code: int = 0) -> Any:
    done = isrflow(*arguments, "--format", "json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def epochs_of(bus: EmbeddedBus) -> dict[int, int]:
    """Return each broker's epoch."""
    return {number: broker.broker_epoch for number, broker in read_image(bus.image()).cluster.brokers.items()}


def publish_isr(bus: EmbeddedBus, partition: dict[str, Any], isr: tuple[int, ...]) -> None:
    """Ask for an ISR as the leader would, whose broker epoch is its id here because it registered first."""
    epochs = {name: partition[name] for name in ("leader_epoch", "partition_epoch")}
    leader = partition["leader"]
    seq = publish(
        bus,
        kind="alter_isr",
        topic=partition["topic"],
        partition=partition["partition"],
        broker=leader,
        broker_epoch=epochs_of(bus)[leader],
        isr=isr,
        **epochs,
    )
    wait_for(bus, seq)


def fence(bus: EmbeddedBus, broker: int) -> None:
    """Let a broker ask to be fenced."""
    wishes = {"want_fence": True, "want_shutdown": False}
    epoch = epochs_of(bus)[broker]
    wait_for(bus, publish(bus, kind="broker_heartbeat", broker=broker, broker_epoch=epoch, **wishes))
