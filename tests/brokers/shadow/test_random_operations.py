"""Whatever records come, in whatever order, they are cut into operations whose rows make the image."""

import random
from typing import Any

import pytest

from brokers.shadow.cluster_image import ClusterImage
from brokers.shadow.operation import Operation
from brokers.shadow.operations import Operations
from brokers.shadow.source import UNKNOWN_RECORD, Gap, Snapshot
from brokers.wire.metadata.record_frame import Record
from tests.brokers.shadow.worlds import (
    T,
    U,
    batch,
    broker,
    change,
    partition,
    rec,
    registration,
    rows_of,
    rows_of_image,
)

NAMES = {T: "t", U: "u"}


def ids(rng: random.Random) -> list[int]:
    return rng.sample((1, 2, 3, 4), rng.randint(0, 4))


def any_change(rng: random.Random) -> Record:
    values: dict[str, Any] = {
        "Isr": ids(rng),
        "Replicas": ids(rng),
        "AddingReplicas": ids(rng),
        "RemovingReplicas": ids(rng),
        "EligibleLeaderReplicas": ids(rng),
        "LastKnownElr": ids(rng),
        "Leader": rng.choice((-2, -1, 1, 2, 3)),
        "LeaderRecoveryState": rng.choice((-1, 0, 1)),
    }
    kept = {name: value for name, value in values.items() if rng.random() < 0.4}
    return change(rng.randrange(3), rng.choice((T, U)), **kept)


def any_record(rng: random.Random, offset: int) -> Record:
    number, topic = rng.randint(1, 4), rng.choice((T, U))
    match rng.randrange(14):
        case 0:
            return broker(number, epoch=rng.randint(max(0, offset - 3), offset), incarnation=rng.choice((T, U)))
        case 1:
            values = {"Fenced": rng.choice((-1, 0, 1)), "InControlledShutdown": rng.choice((0, 1))}
            return registration(number, LogDirs=rng.choice(([], [T])), **values)
        case 2:
            return rec(rng.choice(("FenceBroker", "UnfenceBroker")), Id=number)
        case 3:
            return rec("UnregisterBroker", BrokerId=number)
        case 4:
            return rec("Topic", Name=NAMES[topic], TopicId=topic)
        case 5:
            return partition(rng.randrange(3), topic, Isr=ids(rng), EligibleLeaderReplicas=ids(rng))
        case 6:
            return rec("RemoveTopic", TopicId=topic) if rng.random() < 0.3 else rec("NoOp")
        case 7:
            value = rng.choice((None, "1", "2"))
            return rec("Config", ResourceType=2, ResourceName=NAMES[topic], Name="min.insync.replicas", Value=value)
        case 8:
            return rec("ClearElr", TopicName=rng.choice(("", "t", "u")))
        case 9:
            return rec(rng.choice(("BeginTransaction", "EndTransaction", "AbortTransaction")))
        case 10:
            return Record(UNKNOWN_RECORD, 0, {"ApiKey": 99, "Bytes": 1})
    return any_change(rng)


@pytest.mark.parametrize("seed", range(40))
def test_rows_make_the_image(seed: int) -> None:
    rng, cut, offset = random.Random(seed), Operations(), 0
    found: list[Operation] = []
    if rng.random() < 0.5:
        seeded = tuple(any_record(rng, 0) for _ in range(5) if rng.random() < 0.1)
        offset = 10
        found += cut.take(Snapshot(10, 1, 0, tuple(one for one in seeded if fits(one))))
    for _ in range(60):
        if rng.random() < 0.05:
            found += cut.take(Gap(offset, offset + 5, "lost"))
            offset += 5
        records = [any_record(rng, offset + place) for place in range(rng.randint(1, 8))]
        found += cut.take(batch(offset, *records))
        offset += len(records)
    found += cut.end()
    offsets = [(one.offset, one.last_offset) for one in found]
    assert offsets == sorted(offsets)
    assert len({first for first, _ in offsets}) == len(offsets)
    assert all(first <= last for first, last in offsets)
    made, whole = rows_of(found), rows_of_image(cut.image)
    assert (made["brokers"], made["topics"], made["partitions"]) == (
        whole["brokers"],
        whole["topics"],
        whole["partitions"],
    )


def fits(record: Record) -> bool:
    """Return whether a snapshot may begin with a record."""
    try:
        ClusterImage().apply(record)
    except Exception:
        return False
    return True
