"""A cluster's history in its decisions: which gateways led, which brokers were fenced, how small ISRs became.

Gateways and Kafka's own controllers write the same metadata log, of which brokers hold copies, so both are measured
alike. Brokers in ZooKeeper mode have no such log. There the decisions on the bus are read.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from brokers.wire.metadata.record_frame import decode_record
from brokers.wire.record_batch import LEADER_CHANGE, RecordBatch, control_key, decode_batches
from state.ids import NO_LEADER
from tests.support.broker_copies import cuts_of, log_of

FENCED, UNCHANGED = 1, 0
SAME_LEADER = -2
# A record's key is its second byte. Stock Kafka also writes kinds for which there is no layout here.
REGISTER, CHANGE_REGISTRATION, PARTITION, CHANGE_PARTITION = 0, 17, 3, 5
READ = (REGISTER, CHANGE_REGISTRATION, PARTITION, CHANGE_PARTITION)


class Timeline:
    """A cluster from its beginning, told in order, and what happened since ``since_ms``."""

    def __init__(self, since_ms: int) -> None:
        # Each leader of the quorum, and how many seconds after ``since_ms`` it began.
        self.leaders: list[tuple[int, float]] = []
        # Each broker that was fenced since then, and when.
        self.fences: list[tuple[int, float]] = []
        # At the worst moment since then: the size of the smallest ISR, and how many partitions had one member or none
        # in sync, or no leader.
        self.isr_min = 0
        self.alone_max = self.leaderless_max = 0
        self.leaderless_s = 0.0
        # The state at the end.
        self.fenced: dict[int, bool] = {}
        self.partitions: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._since_ms = since_ms
        self._at_s = 0.0
        self._was_seen = False
        self._leaderless_from_s: float | None = None

    def at(self, time_ms: int) -> None:
        """Set the time of the facts that follow."""
        self._at_s = (time_ms - self._since_ms) / 1000
        if self._at_s >= 0 and not self._was_seen:
            # The state until then.
            self._look()

    def end(self) -> None:
        """End the facts of one moment."""
        if self._at_s >= 0:
            self._look()

    def close(self) -> None:
        """End the whole timeline."""
        if not self._was_seen:
            self._look()

    def _look(self) -> None:
        smallest = min((len(held["isr"]) for held in self.partitions.values()), default=0)
        self.isr_min = min(self.isr_min, smallest) if self._was_seen else smallest
        self.alone_max = max(self.alone_max, sum(len(held["isr"]) <= 1 for held in self.partitions.values()))
        leaderless = sum(held["leader"] == NO_LEADER for held in self.partitions.values())
        self.leaderless_max = max(self.leaderless_max, leaderless)
        if self._leaderless_from_s is not None:
            self.leaderless_s += self._at_s - self._leaderless_from_s
        self._leaderless_from_s = self._at_s if leaderless else None
        self._was_seen = True

    def lead(self, voter: int) -> None:
        self.leaders.append((voter, self._at_s))

    def fence(self, broker: int, is_fenced: bool) -> None:
        if self._at_s >= 0 and is_fenced and not self.fenced.get(broker, True):
            self.fences.append((broker, self._at_s))
        self.fenced[broker] = is_fenced

    def hold(self, topic: str, partition: int, **told: Any) -> None:
        """Take in the leader, the ISR and the replicas of a partition, or what changes of them."""
        self.partitions[topic, partition] = {**self.partitions.get((topic, partition), {}), **told}

    def leaders_since(self) -> list[tuple[int, float]]:
        """Return each leader of the quorum since then, and after how many seconds it began."""
        return [(voter, at_s) for voter, at_s in self.leaders if at_s >= 0]

    def is_whole(self, brokers: int) -> bool:
        """Return whether no broker is fenced, and all replicas of all partitions are in sync."""
        return [*self.fenced.values()] == [False] * brokers and all(
            len(held["isr"]) == len(held["replicas"]) for held in self.partitions.values()
        )


def told_by_log(directories: Iterable[Path], since_ms: int) -> Timeline:
    """Read the newest of several copies of the metadata log."""
    logs = [_batches_of(directory) for directory in directories]
    ahead = max((log for log in logs if log), key=lambda log: (log[-1].leader_epoch, log[-1].next_offset))
    told = Timeline(since_ms)
    for batch in ahead:
        told.at(batch.timestamp_ms)
        for key, value in batch.records:
            if not batch.control:
                _tell(told, value)
            elif key == control_key(LEADER_CHANGE):
                # Its version has two bytes, and the leader's id four.
                told.lead(int.from_bytes(value[2:6], "big"))
        told.end()
    told.close()
    return told


def _batches_of(directory: Path) -> list[RecordBatch]:
    """Read the whole batches of a metadata log, which may still be written."""
    data = log_of(directory)
    return list(decode_batches(data[: max(cuts_of(data), default=0)]))


def _tell(told: Timeline, record: bytes) -> None:
    key = record[1]
    if key not in READ:
        return
    values = decode_record(record).values
    if key in (REGISTER, CHANGE_REGISTRATION):
        if key == REGISTER or values["Fenced"] != UNCHANGED:
            told.fence(values["BrokerId"], values["Fenced"] == FENCED)
        return
    held = {name: values[name.capitalize()] for name in ("leader", "isr", "replicas")}
    if key == CHANGE_PARTITION:
        held = {name: value for name, value in held.items() if value not in (None, SAME_LEADER)}
    told.hold(values["TopicId"], values["PartitionId"], **held)


def told_by_decisions(decisions: Iterable[Mapping[str, Any]], since_ms: int) -> Timeline:
    """Read the decisions of an engine."""
    told = Timeline(since_ms)
    for decision in decisions:
        told.at(decision["time_ms"])
        if decision["kind"] == "quorum":
            told.lead(decision["voter"])
        elif decision["kind"] == "broker":
            told.fence(decision["broker"], decision["state"] == "fenced")
        elif decision["kind"] == "leader_and_isr":
            held = {name: decision[name] for name in ("leader", "isr", "replicas")}
            told.hold(decision["topic"], decision["partition"], **held)
        told.end()
    told.close()
    return told
