"""What must hold of the decisions on each partition, in their order (A10, A11 and B of the invariants)."""

from collections.abc import Callable

from isrflow.state.cluster import Outcome, State
from isrflow.state.decisions import AnyDecision, BrokerDecision, LeaderAndIsr
from isrflow.state.events import AlterIsr, BrokerRegister, Logged, TopicPartition
from isrflow.state.ids import NO_LEADER


class DecisionsSeen:
    """Hold the newest record of each partition, and who led in each leader epoch."""

    def __init__(self, violated: Callable[[str, str], None], row: Callable[[str, str, str], None]) -> None:
        self.records: dict[TopicPartition, LeaderAndIsr] = {}
        self.registered: set[int] = set()
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._states: dict[int, str] = {}
        self._broker_epochs: dict[int, int] = {}
        self._violated = violated
        self._row = row

    def look_at(self, batch: list[Logged], before: State, outcome: Outcome) -> None:
        """Judge a batch of decisions, one after the other."""
        events = {logged.seq: logged for logged in batch}
        self.registered = {logged.event.broker for logged in batch if isinstance(logged.event, BrokerRegister)}
        for decision in outcome.decisions:
            self._broker(decision)
            if isinstance(decision, LeaderAndIsr):
                self._leader_and_isr(decision, events[decision.seq])
        brokers = outcome.state.cluster.brokers
        for place, record in self.records.items():
            fenced = [member for member in record.isr if member not in brokers or not brokers[member].is_live]
            if not record.isr or (fenced and len(record.isr) > 1):
                self._violated("A11", f"{place}: ISR {record.isr}, of which {fenced} are fenced")

    def _broker(self, decision: AnyDecision) -> None:
        if not isinstance(decision, BrokerDecision):
            return
        self._row("engine", f"broker {decision.broker}", f"{decision.state} ({decision.reason})")
        if decision.broker_epoch < self._broker_epochs.get(decision.broker, -1):
            self._violated("B10", f"the epoch of broker {decision.broker} went back to {decision.broker_epoch}")
        self._states[decision.broker] = decision.state
        self._broker_epochs[decision.broker] = decision.broker_epoch

    def _leader_and_isr(self, now: LeaderAndIsr, cause: Logged) -> None:
        place = TopicPartition(now.topic, now.partition)
        leads = f"leader {now.leader} epoch {now.leader_epoch}.{now.partition_epoch} isr {now.isr} ({now.reason})"
        self._row("engine", f"{place.topic}-{place.partition}", leads)
        if now.leader != NO_LEADER and now.leader not in now.isr:
            self._violated("A10", f"{place}: leader {now.leader} is not in the ISR {now.isr}")
        if now.leader != NO_LEADER and self._leaders.setdefault((place, now.leader_epoch), now.leader) != now.leader:
            self._violated("B3", f"{place}: epoch {now.leader_epoch} has two leaders")
        before = self.records.get(place)
        self.records[place] = now
        if before is None:
            return
        self._epochs(place, before, now)
        if isinstance(cause.event, AlterIsr) and now.partition_epoch > before.partition_epoch:
            self._by_leader(place, before, cause.event)

    def _epochs(self, place: TopicPartition, before: LeaderAndIsr, now: LeaderAndIsr) -> None:
        leader_step = now.leader_epoch - before.leader_epoch
        partition_step = now.partition_epoch - before.partition_epoch
        if partition_step not in (0, 1) or leader_step < 0:
            self._violated("B1", f"{place}: from {before.leader_epoch}.{before.partition_epoch} to {now}")
        if leader_step > partition_step:
            self._violated("B2", f"{place}: the leader epoch grew without the partition epoch: {now}")
        if now.leader != before.leader and leader_step == 0:
            self._violated("B4", f"{place}: {before.leader} -> {now.leader} in epoch {now.leader_epoch}")
        if set(now.isr) != set(before.isr) and partition_step == 0:
            self._violated("B1", f"{place}: another ISR in one partition epoch: {before.isr} -> {now.isr}")

    def _by_leader(self, place: TopicPartition, before: LeaderAndIsr, asked: AlterIsr) -> None:
        held = (before.leader, before.leader_epoch, before.partition_epoch)
        if (asked.broker, asked.leader_epoch, asked.partition_epoch) != held:
            self._violated("B6", f"{place}: {asked} was accepted when {held} was committed")
        epochs = asked.isr_epochs or (-1,) * len(asked.isr)
        for member, epoch in zip(asked.isr, epochs, strict=True):
            if self._states.get(member) != "active":
                self._violated("B7", f"{place}: {member} is {self._states.get(member)}, and may be in {asked.isr}")
            if epoch not in (-1, self._broker_epochs[member]):
                self._violated("B7", f"{place}: {member} is not the incarnation that its leader saw")
