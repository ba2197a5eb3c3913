"""Simulated producers and consumers: they believe old metadata, retry, and keep reading."""

import asyncio
import random

from brokers.mock.messages import FETCH, METADATA, PRODUCE, Asked
from brokers.wire.batch_header import Batch, batches_in
from brokers.wire.catalogue import Values
from brokers.wire.errors import ErrorCode
from brokers.wire.messages import WireError
from state.events import TopicPartition
from tests.simulation.clients_seen import ClientsSeen
from tests.simulation.network import PORTS_FROM, Connection, Network
from tests.support.batches import batch

ALL, LEADER = -1, 1
REQUEST_TIMEOUT_MS = 700
TRIES_MAX = 6
FAILED = (OSError, TimeoutError, WireError)
_METADATA_VERSION, _PRODUCE_VERSION, _FETCH_VERSION = 8, 9, 11
_TRANSIENT = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
_NOT_STORED = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})


class Client:
    """A client with its own, perhaps outdated, view of a partition's leader."""

    def __init__(
        self, place: TopicPartition, brokers: list[int], network: Network, rng: random.Random, seen: ClientsSeen
    ) -> None:
        self.place = place
        self.stopping = False
        self.network = network
        self.rng = rng
        self.seen = seen
        self._brokers = brokers
        self._leader = -1
        self._connections: dict[int, Connection] = {}

    async def _ask(self, broker: int, asked: Asked) -> Values:
        connection = self._connections.pop(broker, None) or self.network.connect(PORTS_FROM + broker)
        if connection is None:
            await asyncio.sleep(self.network.delay_s())
            raise ConnectionRefusedError(f"broker {broker}")
        answer = await connection.ask(asked, REQUEST_TIMEOUT_MS)
        self._connections[broker] = connection
        return answer

    async def leader(self) -> int:
        """Return the leader; if none is known, ask any broker. -1 if that broker knows none."""
        if self._leader < 0:
            asked = Asked(METADATA, _METADATA_VERSION, {"Topics": [{"Name": self.place.topic}]})
            answer = await self._ask(self.rng.choice(self._brokers), asked)
            for one in answer["Topics"][0]["Partitions"]:
                if one["PartitionIndex"] == self.place.partition:
                    self._leader = one["LeaderId"]
        return self._leader

    async def ask_leader(self, asked: Asked) -> Values | None:
        """Ask the leader. Return None, and forget the leader, if it does not answer."""
        try:
            leader = await self.leader()
            return await self._ask(leader, asked) if leader >= 0 else None
        except FAILED:
            self._leader = -1
            return None

    def doubt(self) -> None:
        self._leader = -1


class Producer(Client):
    """A producer that sends one record after another, and retries each until it is acknowledged or given up.

    With ``idempotent`` all records have sequence numbers and acks=all. After a record that was given up, whose fate is
    unknown, the numbers restart in the next producer epoch.
    """

    idempotent = False

    async def run(self, name: int) -> None:
        number, epoch, sequence = 0, 0, 0
        while not self.stopping:
            number += 1
            value = b"%d-%d" % (name, number)
            if self.idempotent:
                records = batch(value, producer_id=name, producer_epoch=epoch, sequence=sequence)
                stored = await self._send(records, ALL, is_next=sequence > 0)
                epoch, sequence = (epoch, sequence + 1) if stored else (epoch + 1, 0)
            else:
                await self._send(batch(value), LEADER if self.rng.random() < 0.2 else ALL, is_next=False)
            await asyncio.sleep(self.rng.choice((0.0, 0.02, 0.1, 0.3)))

    async def _send(self, records: bytes, acks: int, is_next: bool) -> bool:
        """Send a batch, and return whether it was acknowledged. If ``is_next``, it follows an acknowledged one."""
        [(_, header)] = batches_in(records)
        if self.idempotent:
            self.seen.sends_once(header.crc)
        asked = self._produce(records, acks)
        refused_only = True
        for _ in range(TRIES_MAX):
            life = self.seen.life(self.place.topic)
            answer = await self.ask_leader(asked)
            if answer is not None:
                one = answer["Responses"][0]["PartitionResponses"][0]
                if one["ErrorCode"] == ErrorCode.NONE:
                    if acks == ALL:
                        self.seen.acknowledged(self.place, life, one["BaseOffset"], header.crc)
                    return True
                if one["ErrorCode"] not in _TRANSIENT:
                    self.network.report(f"a producer was told {ErrorCode(one['ErrorCode']).name}")
                if is_next and one["ErrorCode"] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                    self.seen.out_of_order(self.place, life)
                refused_only = refused_only and one["ErrorCode"] in _NOT_STORED
            self.doubt()
            refused_only = refused_only and answer is not None
            await asyncio.sleep(self.rng.uniform(0.01, 0.2))
        if acks == ALL and refused_only:
            self.seen.given_up(self.place, header.crc)
        return False

    def _produce(self, records: bytes, acks: int) -> Asked:
        data = {"Index": self.place.partition, "Records": records}
        topics = [{"Name": self.place.topic, "PartitionData": [data]}]
        values = {"Acks": acks, "TimeoutMs": REQUEST_TIMEOUT_MS - 100, "TopicData": topics}
        return Asked(PRODUCE, _PRODUCE_VERSION, values)


class Consumer(Client):
    """A consumer that reads from the beginning, below the high watermark."""

    async def run(self) -> None:
        offset, life = 0, 0
        while not self.stopping:
            if life != self.seen.life(self.place.topic):
                offset, life = 0, self.seen.life(self.place.topic)
            answer = await self.ask_leader(self._fetch(offset))
            one = answer["Responses"][0]["Partitions"][0] if answer is not None else None
            if one is None or one["ErrorCode"]:
                self.doubt()
            elif one["Records"]:
                read: list[Batch] = [header for _, header in batches_in(one["Records"])]
                self.seen.consumed(self.place, life, read)
                offset = read[-1].next_offset
            # Reading the same offsets again must give the same records.
            if self.rng.random() < 0.05:
                offset = self.rng.randint(0, offset)
            await asyncio.sleep(self.rng.choice((0.02, 0.1, 0.4)))

    def _fetch(self, offset: int) -> Asked:
        partition = {"Partition": self.place.partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}
        topics = [{"Topic": self.place.topic, "Partitions": [partition]}]
        values = {"ReplicaId": -1, "MaxWaitMs": 100, "MinBytes": 1, "MaxBytes": 1 << 20, "Topics": topics}
        return Asked(FETCH, _FETCH_VERSION, values)
