"""The event log of a story: its clock, the live brokers, and what each of them knows.

The writer follows the rules' state, so a command may leave out what a broker knows by itself: its epoch, and the
epochs of the partition that the command is about.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from controller_logic.balance import event_of
from controller_logic.replay import first_states, logged
from controller_logic.step import step
from isrflow.contract import ENGINE_KINDS
from state.canonical import number
from state.decisions import AnyDecision, Imbalance, decode
from state.level import FIRST_LEVEL
from state.part import part_of
from state.partition import Partition
from state.policy import Policy
from tests.properties.laws import check_laws

START_MS = 1_700_000_000_000
BEAT_MS = 2_000
# One gateway is silent as long as brokers are between two heartbeats, so several gateways beat more often.
GATEWAY_BEAT_MS = 500

Wishes = dict[str, bool]
ALIVE: Wishes = {"want_fence": False, "want_shutdown": False}


class Written(NamedTuple):
    """An event of a story; ``quiet`` events set the scene and are not shown one by one."""

    seq: int
    raw: bytes
    quiet: bool


class Script:
    """The state of a story in progress.

    * ``beating``: the brokers that heartbeat while time passes, each with its wishes
    * ``epochs``: all epochs that each broker has had; ``topic_ids``: all ids that each topic's name has had
    * ``kraft_brokers``: the brokers that register as KRaft brokers
    * ``gateways``: those that heartbeat while time passes, each with the brokers that it says it hears
    * ``gateway_level``: the level that they support
    * ``ends``: the log end offsets reported last
    * ``charts``, ``introduced``, ``described``: what to show after the current block
    """

    def __init__(self) -> None:
        self.clock_ms = START_MS
        # Only stories about balance enable it, because otherwise a broker that returns would soon lead again.
        self.settings = {"auto.leader.rebalance.enable": "false"}
        self.beating: dict[int, Wishes] = {}
        self.epochs: dict[int, list[int]] = {}
        self.kraft_brokers: set[int] = set()
        self.gateways: dict[int, list[int] | None] = {}
        self.gateway_level = FIRST_LEVEL
        self._unbeaten_ms = 0
        self.ends: dict[tuple[str, int], dict[int, int]] = {}
        self.topic_ids: dict[str, list[str]] = {}
        self.quiet = False
        self._state = first_states(1)[0]
        self.begin_block()

    def begin_block(self) -> None:
        self.written: list[Written] = []
        self.charts: list[tuple[str, int]] = []
        self.introduced: list[str] = []
        self.described: list[str] = []

    def write(self, kind: str, **fields: Any) -> int:
        """Write an event at the present time, and return its seq."""
        if kind in ENGINE_KINDS:
            fields.setdefault("controller_epoch", self.controller_epoch)
        return self.write_raw(msgspec.json.encode({"kind": kind, "time_ms": self.clock_ms, **fields}))

    def write_raw(self, raw: bytes) -> int:
        seq = self._state.cluster.seq + 1
        self.written.append(Written(seq, raw, self.quiet))
        outcome = step(self._state, list(logged([(seq, raw)])), Policy())
        check_laws(self._state, outcome, Policy())
        self._state = outcome.state
        for topic in outcome.changes.values():
            if topic is not None and topic.topic_id not in (known := self.topic_ids.setdefault(topic.topic, [])):
                known.append(topic.topic_id)
        self._bring_back_counts(outcome.decisions)
        return seq

    def _bring_back_counts(self, decisions: Sequence[AnyDecision]) -> None:
        """Publish the counts of a balance check, as the engine does."""
        for _, _, body in number(map(part_of, decisions)):
            decision = decode(body)
            if isinstance(decision, Imbalance):
                self.write_raw(msgspec.json.encode(event_of(decision)))

    @property
    def controller_epoch(self) -> int:
        return self._state.cluster.controller_epoch

    def claim(self, epoch: int, **fields: Any) -> None:
        """Let another controller take over."""
        fields = {"controller_id": f"job-{epoch}", "controller_epoch": epoch, "settings": self.settings, **fields}
        self.write("controller_started", **fields)

    def claim_if_first(self) -> None:
        """Let the first controller take over, unless one has."""
        if self.controller_epoch == 0:
            self.claim(1)

    def partition(self, topic: str, number: int) -> Partition:
        """Find a partition. An unknown partition looks like one that never had a leader."""
        held = self._state.topics.get(topic)
        if held is None or number >= len(held.partitions):
            return Partition(number, None, (), (), leader_epoch=0, partition_epoch=0)  # type: ignore[arg-type]
        return held.partitions[number]

    def topic_fields(self, topic: str, topic_id: str | None) -> dict[str, str]:
        """Return a topic's name and, if ``topic_id`` is given, its id: the ``current`` or the ``stale`` one."""
        if topic_id is None:
            return {"topic": topic}
        return {"topic": topic, "topic_id": self.topic_ids[topic][-2 if topic_id == "stale" else -1]}

    def broker_epoch(self, broker: int, text: str | None = None) -> int:
        """Return a broker's epoch; for ``stale`` its previous incarnation's; otherwise the number given."""
        epochs = self.epochs.get(broker) or [0]
        if text is None:
            return epochs[-1]
        return (epochs[-2] if len(epochs) > 1 else epochs[-1] - 1) if text == "stale" else int(text)

    def register(self, broker: int, **fields: Any) -> None:
        seq = self.write("broker_register", broker=broker, **fields)
        held = self._state.cluster.brokers.get(broker)
        if held is not None and held.broker_epoch == seq:
            self.epochs.setdefault(broker, []).append(seq)

    def beat(self, broker: int, wishes: Wishes, **fields: Any) -> None:
        epoch = fields.pop("broker_epoch", self.broker_epoch(broker))
        self.write("broker_heartbeat", broker=broker, broker_epoch=epoch, **wishes, **fields)

    def pass_time(self, ms: int) -> None:
        """Advance time with ticks, while brokers heartbeat."""
        step_ms = GATEWAY_BEAT_MS if len(self._state.cluster.gateways) > 1 else BEAT_MS
        while True:
            some = min(ms, step_ms)
            self.clock_ms += some
            self._unbeaten_ms += some
            # Without a bus a heartbeat counts at its own time.
            self.write("tick")
            for gateway, brokers in self.gateways.items():
                told = {"level": self.gateway_level} | ({} if brokers is None else {"hears": brokers})
                self.write("gateway_heartbeat", gateway=gateway, incarnation=f"g{gateway}", **told)
            if self._unbeaten_ms >= (BEAT_MS if step_ms == GATEWAY_BEAT_MS else 1):
                self._unbeaten_ms = 0
                for broker, wishes in self.beating.items():
                    self.beat(broker, wishes)
            ms -= some
            if ms == 0:
                return
