"""Checks of the answers to clients (D4, D6, D7, D10 of docs/invariants.md, and the promises of idempotence)."""

from collections import Counter
from collections.abc import Callable

from brokers.wire.batch_header import Batch
from state.events import TopicPartition
from tests.simulation.logs_seen import LogsSeen, Record


class ClientsSeen:
    """The records acknowledged or refused since a topic was last created.

    ``life`` counts the deleted topics of that name. Answers about an earlier life are no longer judged.
    """

    def __init__(
        self,
        violated: Callable[[str, str], None],
        row: Callable[[str, str, str], None],
        committed: dict[TopicPartition, list[Record]],
        may_lose_records: set[TopicPartition],
    ) -> None:
        self.acknowledged_count = 0
        self.consumed_count = 0
        self._lives: Counter[str] = Counter()
        self._acknowledged: dict[TopicPartition, dict[int, int]] = {}
        self._given_up: set[int] = set()
        self._once: set[int] = set()
        self._stored: dict[TopicPartition, set[int]] = {}
        self._violated = violated
        self._row = row
        self._committed = committed
        self._may_lose_records = may_lose_records

    def life(self, topic: str) -> int:
        return self._lives[topic]

    def forget(self, topic: str) -> None:
        self._lives[topic] += 1
        for held in (self._acknowledged, self._stored):
            for place in [place for place in held if place.topic == topic]:
                del held[place]  # type: ignore[attr-defined]

    def sends_once(self, crc: int) -> None:
        """Note that an idempotent producer sends a record."""
        self._once.add(crc)

    def committed(self, place: TopicPartition, records: list[Record]) -> None:
        """Check that each record of an idempotent producer is committed only once."""
        stored = self._stored.setdefault(place, set())
        for crc in [record.crc for record in records if record.crc in self._once]:
            if crc in stored:
                self._violated("E3", f"{place}: an idempotent producer's record is committed twice")
            stored.add(crc)

    def acknowledged(self, place: TopicPartition, life: int, offset: int, crc: int) -> None:
        """Judge an acknowledgement of acks=all."""
        self.acknowledged_count += 1
        self._row("producer", f"{place.topic}-{place.partition}", f"acknowledged at {offset}")
        if life != self._lives[place.topic]:
            return
        committed = self._committed.get(place, [])
        if place not in self._may_lose_records and (offset >= len(committed) or committed[offset].crc != crc):
            self._violated("D4", f"{place}: {offset} was acknowledged and is not committed ({len(committed)} are)")
        if crc in self._given_up:
            self._violated("D10", f"{place}: {offset} was acknowledged after it was refused for good")
        self._acknowledged.setdefault(place, {})[offset] = crc

    def given_up(self, place: TopicPartition, crc: int) -> None:
        """Judge the final refusal of a record with acks=all."""
        self._given_up.add(crc)
        if crc in self._acknowledged.get(place, {}).values():
            self._violated("D10", f"{place}: a record was refused for good after it was acknowledged")

    def out_of_order(self, place: TopicPartition, life: int) -> None:
        """Judge the answer that an idempotent producer's record does not follow its last acknowledged one."""
        if life == self._lives[place.topic] and place not in self._may_lose_records:
            self._violated("E3", f"{place}: the leader does not know an acknowledged record of an idempotent producer")

    def consumed(self, place: TopicPartition, life: int, read: list[Batch]) -> None:
        """Judge the records that a consumer read."""
        self.consumed_count += len(read)
        if life != self._lives[place.topic] or place in self._may_lose_records:
            return
        committed = self._committed.get(place, [])
        for batch in read:
            offset = batch.base_offset
            if offset >= len(committed) or committed[offset] != Record(batch.leader_epoch, batch.crc):
                self._violated("D6", f"{place}: a consumer read a record at {offset} that is not committed there")

    def vanished(self, logs: LogsSeen) -> str | None:
        """Describe an acknowledged record that is in no log; None if there is none."""
        for place, records in self._acknowledged.items():
            if place in self._may_lose_records:
                continue
            held = [log for replica, log in logs.records.items() if replica.place == place]
            for offset, crc in records.items():
                if not any(len(log) > offset and log[offset].crc == crc for log in held):
                    return f"{place}: {offset} was acknowledged, and is in none of {len(held)} logs"
        return None
