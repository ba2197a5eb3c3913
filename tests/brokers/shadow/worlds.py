"""A metadata log written record by record, and the recorded logs of stock Kafka."""

import json
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from brokers.shadow.causes import Why
from brokers.shadow.cluster_image import ClusterImage
from brokers.shadow.files import read_directory
from brokers.shadow.operation import At, Operation, operation
from brokers.shadow.operations import Operations
from brokers.shadow.place import opened
from brokers.shadow.source import Batch, Read, Snapshot
from brokers.shadow.touched import difference
from brokers.wire.metadata.record_frame import CATALOGUE, Record, encode_record
from brokers.wire.record_batch import (
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    KeyAndValue,
    control_key,
    encode_batch,
)
from state.observed_events import Cause

LOGS = Path(__file__).parent / "logs"
BUNDLES = sorted(LOGS.glob("kafka-*.tar.xz"))
T, U = "TTTTTTTTTTTTTTTTTTTTTQ", "UUUUUUUUUUUUUUUUUUUUUQ"


@cache
def recorded(bundle: Path) -> tuple[Read, ...]:
    """Read all of a recorded log."""
    with opened(bundle) as place:
        return tuple(read_directory(place.directory))


@cache
def steps_of(bundle: Path) -> dict[str, dict[str, int]]:
    """Return what was done to the recorded cluster, and when."""
    with tarfile.open(bundle) as unread:
        file = unread.extractfile("steps.json")
        assert file is not None
        return {one["what"]: one for one in json.load(file)["steps"]}


def control(kind: int, name: str, **values: Any) -> KeyAndValue:
    return control_key(kind), CATALOGUE.encode_message(name, 0, {"Version": 0, **values})


def leader_change(leader: int) -> KeyAndValue:
    return control(LEADER_CHANGE, "LeaderChangeMessage", LeaderId=leader, Voters=[], GrantingVoters=[])


def rec(name: str, **values: Any) -> Record:
    """Make a record in its newest version, with defaults for what is left out."""
    message = CATALOGUE.message(f"{name}Record")
    version = message.layout.valid.high
    return Record(message.name, version, message.decode(version, message.encode(version, values)))


def bytes_of(base_offset: int, *records: Record, epoch: int = 1, time_ms: int = 0) -> bytes:
    return encode_batch(base_offset, epoch, time_ms, [(None, encode_record(*one)) for one in records])


def snapshot_bytes(*records: Record, time_ms: int = 0) -> bytes:
    header = control(SNAPSHOT_HEADER, "SnapshotHeaderRecord", LastContainedLogTimestamp=time_ms)
    footer = control(SNAPSHOT_FOOTER, "SnapshotFooterRecord")
    out = encode_batch(0, 1, time_ms, [header], control=True)
    if records:
        out += bytes_of(1, *records)
    return out + encode_batch(1 + len(records), 1, time_ms, [footer], control=True)


def batch(base_offset: int, *records: Record, epoch: int = 1, time_ms: int = 0) -> Batch:
    return Batch(base_offset, epoch, time_ms, False, records)


def broker(number: int, epoch: int = 0, incarnation: str = "", fenced: bool = True, **rest: Any) -> Record:
    incarnation = incarnation or f"{number}AAAAAAAAAAAAAAAAAAAAA"
    return rec(
        "RegisterBroker",
        BrokerId=number,
        BrokerEpoch=epoch,
        IncarnationId=incarnation,
        EndPoints=[],
        Features=[],
        Fenced=fenced,
        **rest,
    )


def registration(number: int, **values: Any) -> Record:
    return rec("BrokerRegistrationChange", BrokerId=number, BrokerEpoch=0, **values)


def partition(number: int = 0, topic: str = T, **values: Any) -> Record:
    given = {"Replicas": [1, 2, 3], "Isr": [1, 2, 3], "Leader": 1, "RemovingReplicas": [], "AddingReplicas": []}
    given |= {"Directories": [], "LeaderEpoch": 0, "PartitionEpoch": 0}
    return rec("Partition", TopicId=topic, PartitionId=number, **given | values)


def change(number: int = 0, topic: str = T, **values: Any) -> Record:
    return rec("PartitionChange", TopicId=topic, PartitionId=number, **values)


def image_of(found: Iterator[Read] | tuple[Read, ...]) -> ClusterImage:
    """Apply all that was read, without regard for transactions."""
    image = ClusterImage()
    for one in found:
        if isinstance(one, Snapshot):
            image = ClusterImage(one.records)
        elif isinstance(one, Batch):
            for record in one.records:
                image.apply(record)
    return image


TOPIC, NO_OP = rec("Topic", Name="t", TopicId=T), rec("NoOp")
# Three live brokers, t-0 that 1 leads, t-1 that 2 leads.
WORLD = [
    *(broker(number, incarnation=f"{number}AAAAAAAAAAAAAAAAAAAAA", fenced=False) for number in (1, 2, 3)),
    TOPIC,
    partition(0),
    partition(1, Replicas=[2, 3, 1], Isr=[2, 3, 1], Leader=2),
]


def operations(*reads: Read, **given: Any) -> list[Operation]:
    found = Operations(**given)
    return [*(one for read in reads for one in found.take(read)), *found.end()]


def short(one: Operation) -> str:
    partitions = ",".join(f"{row.topic}-{row.partition}" for row in one.results.partitions)
    words = [f"{one.offset}-{one.last_offset}", str(one.cause), str(one.certainty)]
    if isinstance(one.evidence.broker, int):
        words.append(f"by {one.evidence.broker}")
    return " ".join([*words, partitions] if partitions else words)


def rows_of(found: list[Operation]) -> dict[str, dict[object, object]]:
    """Return what the rows of all operations make together."""
    brokers: dict[object, object] = {}
    topics: dict[object, object] = {}
    partitions: dict[object, object] = {}
    settings: dict[object, object] = {}
    for results in (one.results for one in found):
        brokers |= {row.broker: (row.broker_epoch, row.fenced, row.shutting_down) for row in results.brokers}
        for broker in results.unregistered_brokers:
            del brokers[broker]
        topics |= {row.topic_id: row.topic for row in results.topics}
        partitions |= {(row.topic, row.partition): row for row in results.partitions}
        settings |= {(row.entity_type, row.entity, row.key): row.value for row in results.settings}
        for topic in results.deleted_topics:
            del topics[topic.topic_id]
            partitions = {place: row for place, row in partitions.items() if place[0] != topic.topic}  # type: ignore[index]
    return {"brokers": brokers, "topics": topics, "partitions": partitions, "settings": settings}


def rows_of_image(image: ClusterImage) -> dict[str, dict[object, object]]:
    """Return the rows that a seed of the image would have."""
    return rows_of([operation([At(0, 0, 0)], Why(Cause.seed), difference(ClusterImage(), image))])
