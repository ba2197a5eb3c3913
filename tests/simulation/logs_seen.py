"""The logs of all replicas as the checkers know them: (leader epoch, CRC) by offset, followed as they change."""

from typing import NamedTuple

from brokers.mock.log.log import Log
from brokers.wire.batch_header import batches_in
from state.events import TopicPartition


class Record(NamedTuple):
    """One record: its leader epoch and its checksum."""

    epoch: int
    crc: int


class Replica(NamedTuple):
    """One replica's broker and partition."""

    broker: int
    place: TopicPartition


class LogsSeen:
    """The records of every log, including those of dead brokers."""

    def __init__(self) -> None:
        self.records: dict[Replica, list[Record]] = {}

    def of(self, broker: int, place: TopicPartition) -> list[Record]:
        return self.records.setdefault(Replica(broker, place), [])

    def follow(self, replica: Replica, log: Log) -> tuple[list[Record], list[str]]:
        """Read what changed; return the truncated records, and what is wrong with the new ones."""
        held = self.of(*replica)
        end = log.log_end_offset
        cut = held[end:]
        del held[end:]
        return cut, self._read(held, log, end)

    def reread(self, replica: Replica, log: Log) -> list[str]:
        """Read a log again, as after a restart; return what is wrong with it."""
        held = self.of(*replica)
        held.clear()
        return self._read(held, log, log.log_end_offset)

    def _read(self, held: list[Record], log: Log, end: int) -> list[str]:
        while len(held) < end:
            before = len(held)
            for _, batch in batches_in(log.read(before, 1 << 20, end)):
                if batch.base_offset != len(held):
                    return [f"offset {batch.base_offset} follows {len(held) - 1}"]
                held += [Record(batch.leader_epoch, batch.crc)] * (batch.last_offset_delta + 1)
            if len(held) == before:
                return [f"nothing is stored at {before}, and the log ends at {end}"]
        return []


def agree(one: list[Record], other: list[Record], end: int) -> bool:
    """Return whether both have the same records below ``end``."""
    return len(one) >= end and len(other) >= end and one[:end] == other[:end]
