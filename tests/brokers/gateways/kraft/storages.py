"""Storages for tests: events about brokers and topics, and a metadata log that follows their decisions."""

from collections.abc import Iterator, Sequence
from itertools import cycle, groupby
from pathlib import Path
from typing import Any

import msgspec

from brokers.gateways.kraft.log.prepared import Prepared
from brokers.gateways.kraft.log.storage import Storage
from bus.interface import Bus
from state.decisions import AnyDecision, decode

START_MS = 1_700_000_000_000
_ALL = 1_000_000


def event(kind: str, time_ms: int = START_MS, **fields: Any) -> bytes:
    return msgspec.json.encode({"kind": kind, "time_ms": time_ms} | fields)


def registered(broker: int) -> bytes:
    listeners = [{"name": "PLAINTEXT", "host": "localhost", "port": 9000 + broker, "protocol": "PLAINTEXT"}]
    features = [{"name": "metadata.version", "min_version": 7, "max_version": 27}]
    log_dirs = [f"{broker:02d}AAAAAAAAAAAAAAAAAAAA"]
    return event(
        "broker_register",
        broker=broker,
        incarnation=f"{broker:02d}AAAAAAAAAAAAAAAAAAAA",
        listeners=listeners,
        features=features,
        log_dirs=log_dirs,
        rack=f"r{broker}",
    )


def beats(*epochs: tuple[int, int], **fields: Any) -> list[bytes]:
    flags = {"want_fence": False, "want_shutdown": False} | fields
    return [event("broker_heartbeat", broker=broker, broker_epoch=epoch, **flags) for broker, epoch in epochs]


def gateway(incarnation: str, number: int = 100) -> bytes:
    return event("gateway_started", gateway=number, incarnation=incarnation, voters=[100, 101])


def topic(name: str, partitions: int = 2, **config: str) -> bytes:
    fields = {"partitions": partitions, "replication_factor": 3, "config": config}
    return event("create_topic", topic=name, request_id=name, **fields)


# Seq 1 makes the quorum's leader; 2 to 4 are the brokers' registrations, so these are their epochs.
BEGINNING = [gateway("a"), registered(1), registered(2), registered(3), *beats((1, 2), (2, 3), (3, 4))]


def story(topics: int = 6) -> list[bytes]:
    """Make events of many kinds: topics, settings, a broker that leaves, one that is fenced, and a deletion."""
    return [
        *BEGINNING,
        *[topic(f"t{n}", **({"min.insync.replicas": "2"} if n % 2 else {})) for n in range(topics)],
        event("alter_config", entity="topic", name="t0", config={"retention.ms": "5"}),
        event("alter_config", entity="cluster", config={"compression.type": "lz4"}),
        event("allocate_producer_ids", broker=1, broker_epoch=2, request_id="p"),
        *beats((2, 3), want_shutdown=True),
        *beats((3, 4), want_fence=True),
        gateway("b"),
        *beats((3, 4)),
        event("delete_topic", topic="t1", request_id="d"),
        event("alter_config", entity="topic", name="t0", config={"retention.ms": None}),
        registered(2),
        event("alter_reassignment", topic="t2", partition=0, replicas=[3, 1], request_id="r"),
    ]


def following(bus: Bus, after: int, through: int = _ALL) -> Iterator[list[AnyDecision]]:
    """Read the decisions after ``after``, event by event."""
    read = [decode(one.body) for one in bus.decisions((after, _ALL), _ALL) if one.seq <= through]
    for _, group in groupby(read, key=lambda decision: decision.seq):
        yield list(group)


def append(storage: Storage, *group: Prepared) -> None:
    """Write what was prepared in this thread, and make it readable."""
    storage.add(storage.write(group))


def follow(storage: Storage, bus: Bus, cuts: Sequence[int] = (1,), through: int = _ALL, *, together: int = 1) -> None:
    """Let an open storage follow the bus. Prepare a given number of events at a time, and write some ``together``."""
    events = list(following(bus, storage.decided_seq, through))
    turns = cycle(cuts)
    while events:
        group: list[Prepared] = []
        while events and len(group) < together:
            count = next(turns)
            group.append(storage.prepared(events[:count], group[-1] if group else None))
            del events[:count]
        append(storage, *group)


async def commit_next(storage: Storage, bus: Bus) -> None:
    """Let an open storage commit what follows on the bus, as a gateway's feed does."""
    await storage.commit([storage.prepared(list(following(bus, storage.decided_seq)))], lambda: None)


def opened(directory: Path, bus: Bus, **options: Any) -> Storage:
    """Open a storage and begin; close it again if it refuses to begin."""
    storage = Storage(directory, **options)
    try:
        storage.begin(bus)
    except BaseException:
        storage.close()
        raise
    return storage


def whole(storage: Storage, max_bytes: int = 1_000) -> bytes:
    """Read a log from its start, as a broker does: each fetch continues at the end of the last batch."""
    from brokers.wire.record_batch import decode_batches

    data, offset = b"", storage.start_offset
    while piece := storage.read(offset, max_bytes):
        data += piece
        *_, last = decode_batches(piece)
        offset = last.next_offset
    assert offset == storage.end_offset
    return data
