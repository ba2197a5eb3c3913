"""The metadata log of a cluster of any size, as a controller of stock Kafka leaves it on its disk.

A snapshot has all partitions, with replicas at random from the same seed each time. Then a broker is lost: every
partition with a replica on it changes, and once more when it comes back and the leaders take it into their ISRs. Last,
single ISRs shrink.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from brokers.wire.metadata.record_frame import CATALOGUE, encode_record
from brokers.wire.record_batch import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    KeyAndValue,
    control_key,
    encode_batch,
)
from state.ids import as_uuid

SEED, EPOCH, TIME_MS = 4_711, 3, 1_700_000_000_000
LOST, REPLICAS = 1, 3
# Operations on one partition each: leaders whose last follower falls behind.
SINGLE = 10_000
# Of records in a batch of a snapshot, and in one of an operation (QuorumController.MAX_RECORDS_PER_BATCH).
SNAPSHOT_BATCH, BATCH = 1_000, 10_000
_FENCED, _UNFENCED = 1, -1
_NEWEST = {"Partition": 2, "PartitionChange": 2, "RegisterBroker": 3, "Topic": 0, "BrokerRegistrationChange": 2}


class ObservedLog:
    """The log of one cluster, and how many operations and changes of partitions it has."""

    def __init__(self, partitions: int, brokers: int, partitions_per_topic: int = 100) -> None:
        drawn = random.Random(SEED)
        numbers = range(1, brokers + 1)
        self._brokers = numbers
        self._per_topic = partitions_per_topic
        self._uuid = lambda: as_uuid(drawn.randbytes(16))
        self._directories = {broker: self._uuid() for broker in numbers}
        self._topics = [self._uuid() for _ in range(-(-partitions // partitions_per_topic))]
        self._replicas = [drawn.sample(numbers, REPLICAS) for _ in range(partitions)]
        self.operations = self.changes = 0

    def write(self, folder: Path) -> None:
        """Write the files into ``folder``, which is new."""
        folder.mkdir()
        seed = list(self._seed())
        end = len(seed)
        (folder / f"{end:020d}-{EPOCH:010d}.checkpoint").write_bytes(_snapshot(seed))
        # A segment that begins before the end of the snapshot would have what the snapshot has.
        with (folder / f"{end:020d}.log").open("wb") as segment:
            for operation in self._history():
                self.operations += 1
                for start in range(0, len(operation), BATCH):
                    some = operation[start : start + BATCH]
                    segment.write(encode_batch(end, EPOCH, TIME_MS + 1_000 * self.operations, some))
                    end += len(some)

    def _seed(self) -> Iterator[KeyAndValue]:
        for broker in self._brokers:
            epoch = {"IncarnationId": self._uuid(), "BrokerEpoch": broker, "Fenced": False}
            rest: dict[str, Any] = {"EndPoints": [], "Features": [], "LogDirs": [self._directories[broker]]}
            yield _record("RegisterBroker", BrokerId=broker, Rack=f"rack-{broker % 3}", **epoch, **rest)
        for place, replicas in enumerate(self._replicas):
            topic, number = divmod(place, self._per_topic)
            if number == 0:
                yield _record("Topic", Name=f"topic-{topic}", TopicId=self._topics[topic])
            yield _record(
                "Partition",
                TopicId=self._topics[topic],
                PartitionId=number,
                Replicas=replicas,
                Isr=replicas,
                RemovingReplicas=[],
                AddingReplicas=[],
                Leader=replicas[0],
                LeaderEpoch=0,
                PartitionEpoch=0,
                Directories=[self._directories[replica] for replica in replicas],
            )

    def _history(self) -> Iterator[list[KeyAndValue]]:
        """Yield what each operation writes."""
        hit = [place for place, replicas in enumerate(self._replicas) if LOST in replicas]
        left = {place: [replica for replica in self._replicas[place] if replica != LOST] for place in hit}
        lost = [self._change(place, left[place], was_led=self._replicas[place][0] == LOST) for place in hit]
        yield [*lost, _registration(_FENCED)]
        yield [_registration(_UNFENCED)]
        by_leader: dict[int, list[KeyAndValue]] = {broker: [] for broker in self._brokers}
        for place in hit:
            by_leader[left[place][0]].append(self._change(place, self._isr(place), was_led=False))
        yield from filter(None, by_leader.values())
        for place in range(min(SINGLE, len(self._replicas))):
            yield [self._change(place, self._isr(place)[:-1], was_led=False)]

    def _isr(self, place: int) -> list[int]:
        """Return the ISR of a partition once the broker is back."""
        replicas = self._replicas[place]
        return [*(one for one in replicas if one != LOST), *(one for one in replicas if one == LOST)]

    def _change(self, place: int, isr: Sequence[int], *, was_led: bool) -> KeyAndValue:
        topic, number = divmod(place, self._per_topic)
        self.changes += 1
        led = {"Leader": isr[0]} if was_led else {}
        return _record("PartitionChange", TopicId=self._topics[topic], PartitionId=number, Isr=isr, **led)


def written(folder: Path, partitions: int, brokers: int) -> tuple[int, int]:
    """Write a log into a new folder, and return how many operations and changes of partitions it has."""
    log = ObservedLog(partitions, brokers)
    log.write(folder)
    return log.operations, log.changes


def _record(name: str, **values: Any) -> KeyAndValue:
    return None, encode_record(f"{name}Record", _NEWEST[name], values)


def _registration(fenced: int) -> KeyAndValue:
    return _record("BrokerRegistrationChange", BrokerId=LOST, BrokerEpoch=LOST, Fenced=fenced)


def _snapshot(records: Sequence[KeyAndValue]) -> bytes:
    header = _control(SNAPSHOT_HEADER, "SnapshotHeaderRecord", LastContainedLogTimestamp=TIME_MS)
    footer = _control(SNAPSHOT_FOOTER, "SnapshotFooterRecord")
    pieces = [records[start : start + SNAPSHOT_BATCH] for start in range(0, len(records), SNAPSHOT_BATCH)]
    written, offset = [encode_batch(0, EPOCH, TIME_MS, [header], control=True)], 1
    for piece in pieces:
        written.append(encode_batch(offset, EPOCH, TIME_MS, piece))
        offset += len(piece)
    return b"".join([*written, encode_batch(offset, EPOCH, TIME_MS, [footer], control=True)])


def _control(kind: int, name: str, **values: Any) -> KeyAndValue:
    return control_key(kind), CATALOGUE.encode_message(name, 0, {"Version": 0, **values})
