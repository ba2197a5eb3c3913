"""A cluster to try the rules on: publish an event, get its decisions, look at a partition in one line."""

from collections import Counter
from typing import Any, TypeVar

import msgspec

from controller_logic.replay import first_states
from controller_logic.step import step
from isrflow.contract import ENGINE_KINDS
from state.broker import Broker
from state.canonical import number, parts_clash
from state.decisions import Answer, AnyDecision, BrokerDecision, Decision, LeaderAndIsr, Rejected, decode
from state.event_text import decode as decode_event
from state.events import Logged, Malformed
from state.part import part_of
from state.partition import LeaderRecoveryState, Partition
from state.policy import Policy
from state.reason import Reason
from tests.properties.laws import check_laws

_T = TypeVar("_T", bound=Decision)


class World:
    """A cluster of one shard; events enter as JSON text, each in a batch of its own."""

    def __init__(self, *brokers: int, **overrides: str) -> None:
        self.policy = Policy()
        self.overrides = {key.replace("_", "."): value for key, value in overrides.items()}
        self.state = first_states(1)[0]
        self.now = 1_000
        # The bus's note beside each event that is published from now on.
        self.entered_ms: int | None = None
        self.is_claim: bool | None = None
        self.found_ms: int | None = None
        self.decisions: list[AnyDecision] = []
        self.log: list[bytes] = []
        # False where a test breaks a rule on purpose, or makes thousands of changes to reach its subject.
        self.is_checked = True
        for broker in brokers:
            self.join(broker)

    def publish(self, kind: str, **fields: Any) -> list[AnyDecision]:
        raw = self.text_of(kind, **fields)
        # A malformed event would be rejected, and most tests would not notice.
        assert not isinstance(decode_event(raw), Malformed), f"{raw!r} cannot be read"
        return self.publish_raw(raw)

    def text_of(self, kind: str, **fields: Any) -> bytes:
        if kind in ENGINE_KINDS:
            fields.setdefault("controller_epoch", self.state.cluster.controller_epoch)
        if kind == "controller_started":
            # An engine's claim names its settings.
            fields.setdefault("settings", {})
        return msgspec.json.encode({"kind": kind, "time_ms": self.now, **fields})

    def publish_raw(self, raw: bytes) -> list[AnyDecision]:
        self.log.append(raw)
        event = decode_event(raw)
        logged = Logged(self.state.cluster.seq + 1, self.now, event, raw, self.entered_ms, self.is_claim, self.found_ms)
        outcome = step(self.state, [logged], self.policy, overrides=self.overrides)
        before, self.state = self.state, outcome.state
        self.outcome = outcome
        self.decisions = [decode(body) for _, _, body in number(part_of(d) for d in outcome.decisions)]
        if self.is_checked:
            withheld = [d.message for d in self.all(Rejected) if d.reason == Reason.INVARIANT_BROKEN]
            assert withheld == []
            assert not parts_clash(map(part_of, outcome.decisions)), "two decisions in one place"
            told = Counter(d.broker for d in outcome.decisions if isinstance(d, BrokerDecision))
            assert all(count == 1 for count in told.values()), "one event has one decision about a broker"
            check_laws(before, outcome, self.policy, self.overrides)
        return self.decisions

    def claim(self) -> list[AnyDecision]:
        """Let another job claim the next controller epoch."""
        epoch = self.state.cluster.controller_epoch + 1
        told = {"controller_id": "c", "controller_epoch": epoch}
        return self.publish("controller_started", **told)

    def register(self, broker: int, incarnation: str = "first", **fields: Any) -> list[AnyDecision]:
        return self.publish("broker_register", broker=broker, incarnation=incarnation, **fields)

    def beat(self, broker: int, *, fence: bool = False, shutdown: bool = False, **fields: Any) -> list[AnyDecision]:
        fields.setdefault("broker_epoch", self.broker(broker).broker_epoch)
        return self.publish("broker_heartbeat", broker=broker, want_fence=fence, want_shutdown=shutdown, **fields)

    def join(self, broker: int, **fields: Any) -> list[AnyDecision]:
        self.register(broker, **fields)
        return self.beat(broker)

    def fence(self, *brokers: int) -> list[AnyDecision]:
        """End the sessions of ``brokers``, all at the same tick."""
        if self.state.cluster.has_engine_clock:
            # A heartbeat counts at the next tick. So a tick follows the last heartbeats of brokers that fall silent.
            self.tick()
            self.tick(1_000)
            self._beat_all_but(brokers)
            return self.tick(8_000)
        self.now += 9_000
        self._beat_all_but(brokers)
        return self.publish("tick")

    def _beat_all_but(self, brokers: tuple[int, ...]) -> None:
        for broker, held in self.state.cluster.brokers.items():
            if broker not in brokers and held.is_live:
                self.publish("broker_heartbeat", broker=broker, broker_epoch=held.broker_epoch, **_CONTENT)

    def tick(self, after_ms: int = 0) -> list[AnyDecision]:
        self.now += after_ms
        return self.publish("tick")

    def create(self, topic: str, *assignment: tuple[int, ...], **config: str) -> list[AnyDecision]:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        named = {str(number): replicas for number, replicas in enumerate(assignment)}
        return self.publish("create_topic", topic=topic, assignment=named, config=settings)

    def alter_isr(self, topic: str, isr: tuple[int, ...], /, **fields: Any) -> list[AnyDecision]:
        """Ask for an ISR as a leader with the right epochs would; ``fields`` override what it sends."""
        partition = self.partition(topic)
        leader = fields.get("broker", partition.leader)
        held = self.state.cluster.brokers.get(leader)
        request = {
            "topic": topic,
            "partition": 0,
            "broker": leader,
            "broker_epoch": held.broker_epoch if held else 0,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "isr": isr,
        }
        return self.publish("alter_isr", **(request | fields))

    def alter_isrs(self, broker: int, /, *asked: tuple[str, int, tuple[int, ...]], **fields: Any) -> list[AnyDecision]:
        """Ask for ISRs of several partitions at once, as their leader with the right epochs would."""
        rows: dict[str, list[Any]] = {}
        for topic, place, isr in asked:
            held = self.partition(topic, place)
            rows.setdefault(topic, []).append([place, held.leader_epoch, held.partition_epoch, isr])
        topics = [{"topic": topic, "partitions": some} for topic, some in rows.items()]
        request = {"broker": broker, "broker_epoch": self.broker(broker).broker_epoch, "topics": topics}
        return self.publish("alter_isrs", **(request | fields))

    def log_ends(self, broker: int, /, *told: tuple[str, int, int], **fields: Any) -> list[AnyDecision]:
        """Report several log ends of a broker at once, each (topic, partition, end), in the current leader epochs."""
        rows: dict[str, list[list[int]]] = {}
        for topic, place, end in told:
            rows.setdefault(topic, []).append([place, self.partition(topic, place).leader_epoch, end])
        topics = [{"topic": topic, "partitions": some} for topic, some in rows.items()]
        report = {"broker": broker, "broker_epoch": self.broker(broker).broker_epoch, "topics": topics}
        return self.publish("log_end_offsets", **(report | fields))

    def offsets(self, topic: str, partition: int = 0, **ends: int) -> None:
        """Report log end offsets in the current leader epoch: ``b1=5, b2=7``."""
        epoch = self.partition(topic, partition).leader_epoch
        for broker, end in ends.items():
            where = {"topic": topic, "partition": partition, "broker": int(broker[1:])}
            self.publish("log_end_offset", **where, leader_epoch=epoch, log_end_offset=end)

    def broker(self, broker: int) -> Broker:
        return self.state.cluster.brokers[broker]

    def partition(self, topic: str, partition: int = 0) -> Partition:
        found = self.state.topics.get(topic)
        assert found is not None, f"no topic {topic}"
        return found.partitions[partition]

    def line(self, topic: str, partition: int = 0) -> str:
        return line_of(self.partition(topic, partition))

    def replica_states(self, topic: str, partition: int = 0) -> str:
        """List the replicas' states in assignment order: ``Online,Offline``."""
        return ",".join(state.name.removesuffix("Replica") for state in self.partition(topic, partition).replica_states)

    def one(self, kind: type[_T]) -> _T:
        """Return the only decision of a kind that the last event made."""
        found = self.all(kind)
        assert len(found) == 1, found
        return found[0]

    def all(self, kind: type[_T]) -> list[_T]:
        return [decision for decision in self.decisions if isinstance(decision, kind)]

    @property
    def kinds(self) -> str:
        """The kinds of the last event's decisions."""
        return ",".join(str(decision.__struct_config__.tag) for decision in self.decisions)

    @property
    def error(self) -> str:
        """The error of the last event's one answer."""
        return self.one(Answer).error

    @property
    def leader_decision(self) -> str:
        """The reason and the addressees of the last event's one leader_and_isr."""
        decision = self.one(LeaderAndIsr)
        return f"{decision.reason}{' unclean' if decision.unclean else ''} to {_ids(decision.to)}"


_CONTENT = {"want_fence": False, "want_shutdown": False}


def line_of(partition: Partition) -> str:
    """Describe a partition: state, leader, leader epoch/partition epoch, and the ISR in its order."""
    state = partition.state.name.removesuffix("Partition")
    leader = "none" if partition.leader < 0 else partition.leader
    epochs = f"{partition.leader_epoch}/{partition.partition_epoch}"
    recovering = " recovering" if partition.leader_recovery_state == LeaderRecoveryState.RECOVERING else ""
    return f"{state} leader={leader} epoch={epochs} isr={_ids(partition.isr)}{recovering}"


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(str(broker) for broker in brokers)


def claimed(*brokers: int) -> World:
    """Return a world with brokers, whose job has claimed."""
    world = World()
    world.claim()
    for broker in brokers:
        world.join(broker)
    return world
