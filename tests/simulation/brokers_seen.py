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
    """For each incarnation of a broker, the last decision that it read and its last request."""

    def __init__(self, violated: Callable[[str, str], None]) -> None:
        self._violated = violated
        self._positions: dict[int, _Position] = {}
        self._last_requests: dict[tuple[int, TopicPartition], AlterIsr] = {}
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
        """Judge the ISR changes that a broker publishes; a repeated request counts once."""
        for raw in events:
            if _ALTER_ISR in raw:
                request = decode(raw)
                assert isinstance(request, AlterIsr)
                self.requested(request)

    def requested(self, request: AlterIsr) -> None:
        """Judge one request for another ISR."""
        if request.request_id in self._requests:
            return
        self._requests.add(request.request_id)
        place = TopicPartition(request.topic, request.partition)
        before = self._last_requests.get((request.broker, place))
        self._last_requests[request.broker, place] = request
        if before is None:
            return
        same = (before.broker_epoch, before.leader_epoch, before.partition_epoch)
        outstanding = same == (request.broker_epoch, request.leader_epoch, request.partition_epoch)
        # The broker's clock may have been set in between; if it was set back, the times prove nothing.
        waited = 0 <= request.time_ms - before.time_ms < ALTER_ISR_TIMEOUT_MS
        lost = not waited or before.request_id in self._answered
        if outstanding and not lost:
            self._violated(
                "B8", f"{place}: broker {request.broker} asks for {request.isr} before {before.isr} was answered"
            )

    # B12

    def starts_from(self, broker: int, position: _Position) -> None:
        """Note the position of the state that a broker starts from."""
        self._positions[broker] = position

    def followed(self, broker: int, after: _Position, chunk: Sequence[Decided]) -> None:
        """Check that a broker reads every decision, in order."""
        if after != self._positions.get(broker):
            self._violated(
                "B12", f"broker {broker} has read up to {self._positions.get(broker)}, and continues after {after}"
            )
        for decided in chunk:
            self._positions[broker] = (decided.seq, decided.idx)
            if b'"answer"' in decided.body and _ALTER_ISR in decided.body:
                answer = decision_of(decided.body)
                if isinstance(answer, Answer):
                    self._answered.add(answer.request_id)

    def holds(self, partition: Partition, decided: LeaderAndIsr | None) -> None:
        """Check that a broker's view of a partition is the decided one."""
        held = (partition.leader, partition.leader_epoch, partition.isr)
        if decided is None or held != (decided.leader, decided.leader_epoch, decided.isr):
            epoch = partition.partition_epoch
            self._violated("B12", f"broker {partition.broker} holds {partition.place} in {epoch} as {held}: {decided}")

    # B9

    def counted(self, partition: Partition, replica: int, request: Any) -> None:
        """Judge a fetch that counted as a follower's progress."""
        epoch = request["CurrentLeaderEpoch"]
        if epoch != partition.leader_epoch:
            what = f"a fetch of {replica} in epoch {epoch} counted in {partition.leader_epoch}"
            self._violated("B9", f"{partition.place}: {what}")
