"""Write event logs of small worlds at random: brokers that come and go, topics, ISR changes, bad input."""

import random
from collections.abc import Iterator

import msgspec

from controller_logic.log import first_states, logged
from controller_logic.step import step
from state.partition import Partition
from state.policy import Policy
from state.rules import FIRST_RULES, NEWEST_RULES

START_MS = 1_700_000_000_000
BROKERS = (1, 2, 3, 4, 5)
TOPICS = ("orders", "pay.ments", "audit", "clicks-2", "x_y")


class World:
    """Write events that mostly make sense, since it follows what they lead to; a seed gives one log."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random.Random(seed)
        self._seq = 0
        self._time_ms = START_MS
        self._epochs: dict[int, int] = {}
        self._silent: set[int] = set()
        self._topics: dict[str, int] = {}
        (self._state,) = first_states(1)

    def events(self, count: int) -> Iterator[bytes]:
        """Give ``count`` events as JSON text; their seq is their place, from 1."""
        for raw in self._all():
            self._state = step(self._state, list(logged([(self._seq, raw)])), Policy()).state
            yield raw
            if self._seq >= count:
                return

    def _all(self) -> Iterator[bytes]:
        # Of three worlds one goes by the rules of before.
        rules = FIRST_RULES if self._seed % 3 == 0 else NEWEST_RULES
        yield self._written("controller_started", controller_id="world", controller_epoch=1, rules_version=rules)
        for broker in BROKERS:
            yield self._register(broker)
        for broker in BROKERS:
            yield self._heartbeat(broker)
        while True:
            yield self._some_event()

    def _written(self, kind: str, **fields: object) -> bytes:
        self._seq += 1
        return msgspec.json.encode({"kind": kind, "time_ms": self._time_ms, **fields})

    def _register(self, broker: int) -> bytes:
        raw = self._written(
            "broker_register", broker=broker, incarnation=f"{broker}@{self._seq}", rack=f"r{broker % 2}"
        )
        self._epochs[broker] = self._seq
        return raw

    def _heartbeat(self, broker: int, **fields: object) -> bytes:
        flags = {"want_fence": False, "want_shutdown": False} | fields
        return self._written("broker_heartbeat", broker=broker, broker_epoch=self._epochs[broker], **flags)

    def _some_event(self) -> bytes:
        self._time_ms += self._random.choice((0, 1, 40, 300, 900))
        write = self._random.choices(
            (self._alive, self._tick, self._fault, self._admin, self._isr, self._offset, self._junk),
            weights=(30, 20, 6, 10, 14, 18, 2),
        )[0]
        return write()

    def _alive(self) -> bytes:
        speaking = [broker for broker in self._epochs if broker not in self._silent]
        return self._heartbeat(self._random.choice(speaking or list(self._epochs)))

    def _tick(self) -> bytes:
        return self._written("tick", controller_epoch=1)

    def _fault(self) -> bytes:
        broker = self._random.choice(BROKERS)
        what = self._random.randrange(5)
        if what == 0 and len(self._silent) < 3:
            self._silent.add(broker)
            self._time_ms += 3_000
            return self._tick()
        if what == 1:
            self._silent.discard(broker)
            return self._register(broker)
        if what == 2:
            return self._heartbeat(broker, want_shutdown=True, request_id=f"s{self._seq}")
        if what == 3:
            return self._written("controlled_shutdown", broker=broker, broker_epoch=self._epochs[broker])
        return self._heartbeat(broker, want_fence=True)

    def _admin(self) -> bytes:
        topic = self._random.choice(TOPICS)
        what = self._random.randrange(5)
        if what == 0:
            value = self._random.choice(("true", "false", None))
            entity = self._random.choice(({"entity": "cluster"}, {"entity": "topic", "name": topic}))
            return self._written("alter_config", **entity, config={"unclean.leader.election.enable": value})
        if what == 1:
            kind = self._random.choice(("preferred", "unclean"))
            named = [{"topic": topic, "partition": n} for n in range(3)]
            return self._written("elect_leaders", election_type=kind, partitions=self._random.choice((None, named)))
        if what == 2 and topic in self._topics:
            self._topics[topic] += 1
            return self._written("create_partitions", topic=topic, total=self._topics[topic])
        partitions = self._random.randint(1, 6)
        self._topics.setdefault(topic, partitions)
        factor = self._random.randint(1, 4)
        return self._written("create_topic", topic=topic, partitions=partitions, replication_factor=factor)

    def _partition(self) -> tuple[str, int, Partition | None]:
        topic, number = self._random.choice(TOPICS), self._random.randrange(4)
        held = self._state.topics.get(topic)
        return topic, number, held.partitions[number] if held and number < len(held.partitions) else None

    def _isr(self) -> bytes:
        topic, number, held = self._partition()
        if held is None or self._random.random() < 0.3:
            held = Partition(number, None, BROKERS, (), leader=self._random.choice(BROKERS), leader_epoch=1)
        members = self._random.sample(held.replicas, self._random.randint(1, len(held.replicas)))
        if held.leader in held.replicas and held.leader not in members and self._random.random() < 0.9:
            members[0] = held.leader
        return self._written(
            "alter_isr",
            topic=topic,
            partition=number,
            broker=max(held.leader, 0),
            broker_epoch=self._epochs.get(held.leader, 1),
            leader_epoch=max(held.leader_epoch, 0),
            partition_epoch=max(held.partition_epoch, 0),
            isr=members,
            request_id=self._seq,
        )

    def _offset(self) -> bytes:
        topic, number, held = self._partition()
        return self._written(
            "log_end_offset",
            topic=topic,
            partition=number,
            broker=self._random.choice(held.replicas if held else BROKERS),
            leader_epoch=max(held.leader_epoch, 0) if held else 0,
            log_end_offset=self._seq + self._random.randrange(50),
        )

    def _junk(self) -> bytes:
        self._seq += 1
        return self._random.choice(
            (b"not json", b"{}", b'{"kind":"tick","time_ms":-4}', b'{"kind":"nonsense","time_ms":1}', b'"\xff\xfe"')
        )


def recorded(seed: int, count: int) -> list[tuple[int, bytes]]:
    """Give the log of a world: (seq, raw), seq from 1."""
    return list(enumerate(World(seed).events(count), start=1))
