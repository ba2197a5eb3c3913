"""Measure how long a producer waits when a leading broker is killed, under plain Kafka's controller and the engine.

    make bench-failover ARGS="[--kills N] [--rounds N] [--session-ms N] [--set KEY=VALUE]... [--write FILE]"

Each round starts every setup from nothing, in an order that rotates by one, and does its share of the kills. A kill
is a SIGKILL of the broker that leads most partitions. The result is the longest gap between two acknowledgements on any
partition after the kill. Then the broker is started again, joins the ISRs, and gets its leaderships back.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.failover_client import Pace
from bench.failover_setups import BROKERS, Running, Setup, setups
from bench.machine import facts
from bus.interface import Bus
from conf.kafka_versions import KAFKA_VERSION, ZOOKEEPER_KAFKA_VERSION
from state.decisions import BrokerDecision, decode

TOPIC, PARTITIONS = "paced", 6
INTERVAL_MS = 20
WARM_UP_S = 5.0
QUIET_S = 3.0
TIMEOUT_S = 120.0
_ALL = 2**31


class Kill(NamedTuple):
    """The effect of one kill, in ms.

    Under the engine ``parts_ms`` are the times from the kill to the event that reports it, from there to the
    decision in the log, and from there to the end of the gap.
    """

    gap_ms: float
    parts_ms: tuple[float, ...] = ()


class Measured(NamedTuple):
    """The kills of one setup, and the machine's load during them: runnable processes, averaged over a minute."""

    kills: list[Kill]
    loads: list[float]


def main(*options: str) -> None:
    given = _arguments(options)
    compared = setups(given.session_ms)
    if given.only:
        compared = [compared[number - 1] for number in given.only]
    measured: dict[str, Measured] = {setup.name: Measured([], []) for setup in compared}
    for at in range(given.rounds):
        share = given.kills * (at + 1) // given.rounds - given.kills * at // given.rounds
        for setup in [*compared[at % len(compared) :], *compared[: at % len(compared)]]:
            for kill in _round(setup, share, dict(given.set), given.keep):
                measured[setup.name].kills.append(kill)
                measured[setup.name].loads.append(os.getloadavg()[0])
                parts = ", ".join(f"{part:.0f}" for part in kill.parts_ms)
                print(f"  {setup.name}: {kill.gap_ms:.0f} ms {f'({parts})' if parts else ''}", flush=True)
    told = "\n".join(_table(measured, given))
    print(told)
    if given.write is not None:
        given.write.write_text(f"# Fail-over, measured\n\n{told}\n")


def _arguments(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="failover", description="Measure how long a producer waits when a broker is killed."
    )
    parser.add_argument("--kills", type=int, default=10, help="of each setup, over all rounds")
    parser.add_argument("--rounds", type=int, default=2, help="how often each setup is restarted")
    parser.add_argument("--session-ms", type=int, default=6_000, help="the session of all setups except the first")
    parser.add_argument("--set", action="append", default=[], type=_setting, metavar="KEY=VALUE", help="of all brokers")
    parser.add_argument("--only", action="append", type=int, metavar="NUMBER", help="only this setup, from 1 on")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave all logs there")
    parser.add_argument("--write", type=Path, help="a file of markdown to write the table to")
    return parser.parse_args(options)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _round(setup: Setup, kills: int, brokers: dict[str, str], keep: Path | None) -> Iterator[Kill]:
    if not kills:
        return
    with _folder(keep) as folder, setup.running(folder, brokers) as running:
        admin = AdminClient({"bootstrap.servers": running.kafka.bootstrap, "log_level": 0})
        _wait(lambda: _created(admin), "the topic to be created")
        _in_order(admin)
        pace = Pace(running.kafka.bootstrap, TOPIC, PARTITIONS, INTERVAL_MS)
        time.sleep(WARM_UP_S)
        for _ in range(kills):
            yield _killed(running, admin, pace)
        pace.end()


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name:
            yield Path(name)
    else:
        keep.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(prefix="round-", dir=keep))


def _created(admin: AdminClient) -> bool:
    assignment = [[1 + (first + at) % BROKERS for at in range(BROKERS)] for first in range(PARTITIONS)]
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=assignment)
    try:
        admin.create_topics([topic])[TOPIC].result(30)
    except KafkaException as error:
        return bool(error.args[0].name() == "TOPIC_ALREADY_EXISTS")
    return True


def _partitions(admin: AdminClient) -> dict[int, Any]:
    try:
        found = admin.list_topics(TOPIC, timeout=5).topics[TOPIC]
    except KafkaException:
        return {}
    return {} if found.error is not None else dict(found.partitions)


def _in_order(admin: AdminClient) -> None:
    """Wait until all replicas are in sync and the first ones lead, the same number on each broker."""

    def in_sync() -> bool:
        held = _partitions(admin)
        return len(held) == PARTITIONS and all(len(one.isrs) == BROKERS for one in held.values())

    def led_as_wanted() -> bool:
        return all(one.leader == one.replicas[0] for one in _partitions(admin).values())

    _wait(in_sync, "the ISRs to be full")
    if not led_as_wanted():
        admin.elect_leaders(ElectionType.PREFERRED, None).result(60)
        _wait(led_as_wanted, "the first replicas to lead")


def _killed(running: Running, admin: AdminClient, pace: Pace) -> Kill:
    time.sleep(QUIET_S)
    leaders = [one.leader for one in _partitions(admin).values()]
    victim = running.kafka.nodes[max(sorted(leaders), key=leaders.count)]
    pid = victim.pid
    assert pid is not None
    number = victim.spec.node_id
    seq = 0 if running.bus is None else running.bus.last_seq()
    killed_at, killed_ms = time.monotonic(), time.time() * 1000
    psutil.Process(pid).kill()
    parts = [] if running.bus is None else _decided(running.bus, seq, number, killed_at, killed_ms)
    _wait(lambda: number not in {one.leader for one in _partitions(admin).values()}, "other leaders")
    moved_at = time.monotonic()
    _wait(lambda: pace.goes_on(moved_at), "acknowledgements on every partition")
    began, ended = pace.longest_gap(killed_at)
    if parts:
        parts.append((ended - killed_at) * 1000 - sum(parts))
    victim.kill()  # it has already ended; this records that the end was intended
    victim.start()
    victim.wait_until_started()
    _in_order(admin)
    return Kill((ended - began) * 1000, tuple(parts))


def _decided(bus: Bus, seq: int, broker: int, killed_at: float, killed_ms: float) -> list[float]:
    """Wait until a broker is fenced. Return how long the event took, and how long its decision took after that."""
    fenced: list[BrokerDecision] = []

    def found() -> bool:
        decisions = [decode(one.body) for one in bus.decisions((seq, _ALL), 1_000)]
        fenced[:] = [
            one
            for one in decisions
            if isinstance(one, BrokerDecision) and (one.broker, one.state) == (broker, "fenced")
        ]
        return bool(fenced)

    _wait(found, "the broker to be fenced", 0.002)
    decided_ms = (time.monotonic() - killed_at) * 1000
    [event] = bus.read(fenced[0].seq - 1, fenced[0].seq)
    told_ms = msgspec.json.decode(event.raw)["time_ms"] - killed_ms
    return [told_ms, decided_ms - told_ms]


def _wait(condition: Callable[[], bool], what: str, poll_s: float = 0.05) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {TIMEOUT_S:.0f} s for {what}")
        time.sleep(poll_s)


def _table(measured: dict[str, Measured], given: argparse.Namespace) -> Iterator[str]:
    yield f"`make bench-failover`, {time.strftime('%Y-%m-%d')}, on {facts()}."
    settings = ", ".join(f"`{key}={value}`" for key, value in given.set) or "Kafka's default settings"
    yield (
        f"Three brokers of Kafka {KAFKA_VERSION}, or of {ZOOKEEPER_KAFKA_VERSION} in ZooKeeper mode, with {settings}, "
        f"and one topic of {PARTITIONS} partitions with three replicas each. "
        f"An idempotent producer (librdkafka, acks=all) sends to each partition every {INTERVAL_MS} ms. "
        "A leading broker is killed with SIGKILL. The gap is the longest time between two acknowledgements on any "
        "partition after that. "
        f"All setups alternate in one run (rounds: {given.rounds}). The load is a one-minute average."
    )
    yield ""
    yield "| setup | kills | gap, median | gap, worst | relative to the first | load |"
    yield "|---|---|---|---|---|---|"
    first = None
    for name, (kills, loads) in measured.items():
        if not kills:
            continue
        gaps = [kill.gap_ms for kill in kills]
        median = statistics.median(gaps)
        first = first or median
        yield (
            f"| {name} | {len(gaps)} | {median / 1000:.2f} s | {max(gaps) / 1000:.2f} s | {median / first:.0%} "
            f"| {statistics.mean(loads):.1f} |"
        )
    yield ""
    yield "Under the engine, the gap's parts, medians:"
    yield ""
    yield "| setup | kill to event | event to decision | decision to acknowledgement |"
    yield "|---|---|---|---|"
    for name, (kills, _) in measured.items():
        if kills and kills[0].parts_ms:
            yield f"| {name} | {' | '.join(_medians(kills))} |"


def _medians(kills: Sequence[Kill]) -> list[str]:
    columns = zip(*(kill.parts_ms for kill in kills), strict=True)
    return [f"{statistics.median(column):.0f} ms" for column in columns]
