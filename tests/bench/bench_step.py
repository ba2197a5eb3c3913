"""Measure the rules: ``.venv/bin/python tests/bench/bench_step.py [partitions]`` prints microseconds for each.

CPU time, best of three runs, one shard, ten brokers, three replicas a partition.
"""

import sys
import time
from collections.abc import Callable, Sequence

from controller_logic.replay import first_states
from controller_logic.step import step
from state.canonical import number, part_of
from state.cluster import Outcome, State
from state.codec import decode_topics, encode_topics
from state.events import (
    AnyEvent,
    BrokerHeartbeat,
    BrokerRegister,
    ControlledShutdown,
    CreateTopic,
    LogEndOffset,
    Logged,
    Tick,
)
from state.policy import Policy

BROKERS = range(1, 11)
PARTITIONS_PER_TOPIC = 100
POLICY = Policy()
RUNS = 3


def run(state: State, events: Sequence[AnyEvent]) -> Outcome:
    first = state.cluster.seq + 1
    logged = [Logged(seq, event.time_ms, event, b"") for seq, event in enumerate(events, first)]
    return step(state, logged, POLICY)


def world(partitions: int) -> State:
    events: list[AnyEvent] = [BrokerRegister(time_ms=1, broker=b, incarnation="i", rack=f"r{b % 3}") for b in BROKERS]
    events += [beat(b, 2) for b in BROKERS]
    count = partitions // PARTITIONS_PER_TOPIC
    size = PARTITIONS_PER_TOPIC
    events += [CreateTopic(time_ms=3, topic=f"t{n}", partitions=size, replication_factor=3) for n in range(count)]
    return run(first_states(1)[0], events).state


def beat(broker: int, time_ms: int) -> BrokerHeartbeat:
    return BrokerHeartbeat(time_ms=time_ms, broker=broker, broker_epoch=broker, want_fence=False, want_shutdown=False)


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1e6


def report(what: str, micros: float, count: int) -> None:
    print(f"{what:<44} {micros / 1e3:9.1f} ms  {micros / max(count, 1):7.2f} us each of {count}")


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    report("create", best(lambda: world(partitions)), partitions)
    state = world(partitions)
    alive: list[AnyEvent] = [beat(b, 9_000) for b in BROKERS if b != 1]
    fence = [*alive, Tick(time_ms=9_002)]
    fenced = run(state, fence)
    report("fence one of ten brokers, per decision", best(lambda: run(state, fence)), len(fenced.decisions))
    back: list[AnyEvent] = [beat(1, 9_003)]
    returned = run(fenced.state, back)
    report("broker returns, per decision", best(lambda: run(fenced.state, back)), len(returned.decisions))
    leave: list[AnyEvent] = [ControlledShutdown(time_ms=5, broker=1, broker_epoch=1)]
    report("controlled shutdown", best(lambda: run(state, leave)), len(run(state, leave).decisions))
    none: list[AnyEvent] = [*[BrokerRegister(time_ms=4, broker=99, incarnation="i")], beat(99, 5)]
    none[1] = BrokerHeartbeat(
        time_ms=5, broker=99, broker_epoch=state.cluster.seq + 1, want_fence=False, want_shutdown=False
    )
    report("scan for a broker without replicas", best(lambda: run(state, none)), partitions)
    offsets: list[AnyEvent] = [
        LogEndOffset(
            time_ms=4, topic=f"t{n // 300}", partition=n // 3 % 100, broker=replica, leader_epoch=0, log_end_offset=7
        )
        for n in range(min(100_000, partitions * 3))
        for replica in [_replica(state, n)]
    ]
    report("absorb log end offsets", best(lambda: run(state, offsets)), len(offsets))
    moved = run(state, offsets).state
    ticked = run(moved, [Tick(time_ms=5)])
    report("derive high watermarks", best(lambda: run(moved, [Tick(time_ms=5)])), len(ticked.decisions))
    parts = [part_of(decision) for decision in fenced.decisions]
    report("encode decisions", best(lambda: [part_of(d) for d in fenced.decisions]), len(parts))
    report("order and number decisions", best(lambda: number(parts)), len(parts))
    topics = [topic for name in state.topics.names() if (topic := state.topics.get(name)) is not None]
    body = encode_topics(topics)
    report("encode state", best(lambda: encode_topics(topics)), partitions)
    report("decode state", best(lambda: decode_topics(body)), partitions)


def _replica(state: State, number_: int) -> int:
    topic = state.topics.get(f"t{number_ // 300}")
    assert topic is not None
    return topic.partitions[number_ // 3 % 100].replicas[number_ % 3]


if __name__ == "__main__":
    main()
