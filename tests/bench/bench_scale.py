"""A hundred thousand partitions on ten brokers, and one broker's session ends."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from bus.embedded import EmbeddedBus
from tests.support.engine import decided, encoded, running_engine

BROKERS = 10
TOPICS = 1_000
PARTITIONS = 100
SESSION_MS = 9_000


def main(*settings: str) -> None:
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name, running_engine(Path(name), *settings) as bus:
        epochs = {}
        for broker in range(1, BROKERS + 1):
            epochs[broker] = bus.publish([encoded("broker_register", broker=broker, incarnation=f"i{broker}")])

        def heartbeats(*brokers: int) -> int:
            return bus.publish(
                [
                    encoded("broker_heartbeat", broker=b, broker_epoch=epochs[b], want_fence=False, want_shutdown=False)
                    for b in brokers
                ]
            )

        everyone = tuple(epochs)
        decided(bus, heartbeats(*everyone))
        started = time.monotonic()
        last = bus.publish(
            [encoded("create_topic", topic=f"t{i}", partitions=PARTITIONS, replication_factor=3) for i in range(TOPICS)]
        )
        while bus.decided_seq() < last:
            heartbeats(*everyone)
            time.sleep(1)
        print(f"create {TOPICS * PARTITIONS} partitions of RF 3: {time.monotonic() - started:.1f} s")
        lose_one(bus, heartbeats, everyone)


def lose_one(bus: EmbeddedBus, heartbeats: Callable[..., int], everyone: tuple[int, ...]) -> None:
    """Keep nine brokers alive, and time from the tick that fences the tenth to the last decision in the log."""
    decided(bus, heartbeats(*everyone))
    lost, others = everyone[0], everyone[1:]
    after, seen_s = (bus.decided_seq(), 2**31), {bus.last_seq(): time.monotonic()}
    beat_s = deadline_s = time.monotonic()
    deadline_s += SESSION_MS / 1000 + 60
    while not (found := bus.decisions(after, 100_000)):
        if time.monotonic() - beat_s > 1:
            beat_s = time.monotonic()
            heartbeats(*others)
        seen_s.setdefault(bus.last_seq(), time.monotonic())
        if time.monotonic() > deadline_s:
            raise TimeoutError("the broker was not fenced")
        time.sleep(0.002)
    done_s = time.monotonic()
    tick = found[0].seq
    took_s = done_s - next(at for seq, at in sorted(seen_s.items()) if seq >= tick)
    kinds = Counter(msgspec.json.decode(entry.body)["kind"] for entry in found)
    print(f"broker {lost} lost: {dict(kinds)}, all of one tick: {all(entry.seq == tick for entry in found)}")
    print(f"from the fencing tick to the last decision in the log: {took_s:.2f} s, {len(found) / took_s:.0f} rows/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
