"""Checks of brokers' behaviour other than their logs (A5, A6, B8, B9, B12 of the invariants)."""

from collections.abc import Callable, Sequence
from typing import Any

from brokers.mock.replicas.partition import Partition, Role
from bus.interface import Decided
from state.decisions import Answer, LeaderAndIsr
from state.decisions import decode as decision_of
from state.event_text import decode
from state.events import AlterIsr, TopicPartition
from state.ids import NO_LEADER
from tests.simulation.scenery import ALTER_ISR_TIMEOUT_MS

_ALTER_ISR = b'"alter_isr"'
_Position = tuple[int, int]


class BrokersSeen:
    """The last decision that each incarnation of a broker was told, and its last request."""

    def __init__(self, violated: Callable[[str, str], None]) -> None:
        self._violated = violated
        self._told: dict[int, _Position] = {}
        self._asked: dict[tuple[int, TopicPartition], AlterIsr] = {}
        self._requests: set[object] = set()
        self._answered: set[object] = set()

    # A6, A5

    def lifecycle_state(self, broker: int, lifecycle_state: str, was_registered: bool) -> None:
        """Judge a broker's view of its own state."""
        if lifecycle_state == "running" and not was_registered:
            self._violated("A6", f"broker {broker} runs, and was not registered in its epoch")

    def fetchers(self, partition: Partition, fetchers: Sequence[int]) -> None:
        """Judge which leaders a replica is fetched from."""
        follows = partition.role is Role.follower and partition.leader != NO_LEADER
        if list(fetchers) != ([partition.leader] if follows else []):
            what = f"is {partition.role.value}, {partition.leader} leads, and it fetches from {list(fetchers)}"
            self._violated("A5", f"broker {partition.broker} of {partition.place}: {what}")

    # B8

    def published(self, events: Sequence[bytes]) -> None:
        """Judge the ISR changes that a broker asks for; one that is sent twice is one."""
        for raw in events:
            if _ALTER_ISR in raw:
                asked = decode(raw)
                assert isinstance(asked, AlterIsr)
                self.asked(asked)

    def asked(self, asked: AlterIsr) -> None:
        """Judge one request for another ISR."""
        if asked.request_id in self._requests:
            return
        self._requests.add(asked.request_id)
        place = TopicPartition(asked.topic, asked.partition)
        before = self._asked.get((asked.broker, place))
        self._asked[asked.broker, place] = asked
        if before is None:
            return
        same = (before.broker_epoch, before.leader_epoch, before.partition_epoch)
        outstanding = same == (asked.broker_epoch, asked.leader_epoch, asked.partition_epoch)
        # A broker's clock may have been set meanwhile; where it was set back it tells nothing.
        waited = 0 <= asked.time_ms - before.time_ms < ALTER_ISR_TIMEOUT_MS
        lost = not waited or before.request_id in self._answered
        if outstanding and not lost:
            self._violated(
                "B8", f"{place}: broker {asked.broker} asks for {asked.isr} before {before.isr} was answered"
            )

    # B12

    def starts_from(self, broker: int, position: _Position) -> None:
        """Note the position of the state that a broker starts from."""
        self._told[broker] = position

    def told(self, broker: int, after: _Position, chunk: Sequence[Decided]) -> None:
        """Check that a broker takes in each decision, in order."""
        if after != self._told.get(broker):
            self._violated("B12", f"broker {broker} was told up to {self._told.get(broker)}, and goes on after {after}")
        for decided in chunk:
            self._told[broker] = (decided.seq, decided.idx)
            if b'"answer"' in decided.body and _ALTER_ISR in decided.body:
                answer = decision_of(decided.body)
                if isinstance(answer, Answer):
                    self._answered.add(answer.request_id)

    def holds(self, partition: Partition, decided: LeaderAndIsr | None) -> None:
        """Judge what a broker holds of a partition: it was decided so."""
        held = (partition.leader, partition.leader_epoch, partition.isr)
        if decided is None or held != (decided.leader, decided.leader_epoch, decided.isr):
            epoch = partition.partition_epoch
            self._violated("B12", f"broker {partition.broker} holds {partition.place} in {epoch} as {held}: {decided}")

    # B9

    def counted(self, partition: Partition, replica: int, asked: Any) -> None:
        """Judge a fetch that counted as a follower's progress."""
        if asked.current_leader_epoch != partition.leader_epoch:
            what = f"a fetch of {replica} in epoch {asked.current_leader_epoch} counted in {partition.leader_epoch}"
            self._violated("B9", f"{partition.place}: {what}")
