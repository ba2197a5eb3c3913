"""Checks of the decisions, in order (A7 to A14, B, C5 and C7 of docs/invariants.md)."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping

from state.broker import Broker
from state.cluster import Cluster
from state.decisions import (
    AnyDecision,
    BrokerDecision,
    ConfigDecision,
    HighWatermark,
    LeaderAndIsr,
    Rejected,
    TopicDecision,
)
from state.events import AlterIsr, BrokerRegister, LogEndOffset, LogEndOffsets, Logged, ReplicaLog, TopicPartition
from state.ids import NO_LEADER
from state.reason import Reason
from tests.simulation.engine import Batch
from tests.simulation.records_seen import shape_of, step_of

_DEFECTS = (Reason.INVARIANT_BROKEN, Reason.RULES_FAILED)


class DecisionsSeen:
    """The newest record of each partition, all former ones, and the leader of each leader epoch.

    ``records`` lacks topics under deletion, because their replicas go one by one.
    """

    def __init__(self, violated: Callable[[str, str], None], row: Callable[[str, str, str], None]) -> None:
        self.records: dict[TopicPartition, LeaderAndIsr] = {}
        self.decided: dict[tuple[str, int, int], LeaderAndIsr] = {}
        self.topic_ids: dict[str, str] = {}
        self.registered: set[int] = set()
        self.moved_once: set[TopicPartition] = set()
        self._min_isr: dict[str, int] = {}
        self._ends: dict[tuple[TopicPartition, int, int], int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._states: dict[int, str] = {}
        self._broker_epochs: dict[int, int] = {}
        self._controller_epoch = 0
        self._sizes: dict[tuple[str, int], int] = {}
        self._events: deque[Logged] = deque()
        self._cause: Logged | None = None
        self._violated = violated
        self._row = row

    def begin(self, batch: Batch) -> None:
        """Begin a batch, whose decisions follow one by one."""
        self._events = deque(batch.events)
        self.registered = {one.event.broker for one in batch.events if isinstance(one.event, BrokerRegister)}

    def look_at(self, decision: AnyDecision) -> None:
        """Judge the next decision."""
        self._take_in(decision.seq)
        if decision.controller_epoch < self._controller_epoch:
            self._violated("B11", f"epoch {decision.controller_epoch} decides after {self._controller_epoch} did")
        self._controller_epoch = decision.controller_epoch
        match decision:
            case LeaderAndIsr():
                self._leader_and_isr(decision)
            case BrokerDecision():
                self._broker(decision)
            case HighWatermark():
                self._high_watermark(decision)
            case TopicDecision():
                self._row("engine", decision.topic, f"{decision.state} as {decision.topic_id}")
                self.topic_ids[decision.topic] = decision.topic_id
                self._configured(decision.topic, decision.config)
                if decision.state in ("deleting", "ineligible"):
                    self._deletion_begins(decision.topic)
            case ConfigDecision(entity="topic"):
                self._row("engine", decision.name or "", f"configured {decision.config}")
                self._configured(decision.name or "", decision.config)
            case Rejected() if decision.reason in _DEFECTS:
                self._violated("E2", decision.message)

    def end(self, clusters: list[Cluster]) -> None:
        """Judge the state after a batch, in every shard."""
        self._take_in(clusters[0].seq)
        brokers = clusters[0].brokers
        for cluster in clusters:
            if cluster.brokers != brokers:
                self._violated("A7", f"shard {cluster.shard} has other brokers than shard 0")
        self.brokers_agree(brokers)
        for place, record in self.records.items():
            fenced = [member for member in record.isr if member not in brokers or not brokers[member].is_live]
            is_unknown = not (record.isr or record.elr or record.last_known_elr)
            if is_unknown or (fenced and len(record.isr) > 1):
                self._violated("A11", f"{place}: {fenced} of ISR {record.isr} are fenced")

    def brokers_agree(self, brokers: Mapping[int, Broker]) -> None:
        for number, broker in brokers.items():
            said = self._states.get(number), self._broker_epochs.get(number)
            if said != (broker.state.name, broker.broker_epoch):
                held = f"{broker.state.name} in epoch {broker.broker_epoch}"
                self._violated("A7", f"broker {number} is {held} in the state, and {said} in the decisions")

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone. A later topic of the same name is a different one."""
        for held in (self.records, self._high_watermarks):
            for place in [place for place in held if place.topic == topic]:
                del held[place]  # type: ignore[attr-defined]
        for held_by_place in (self._leaders, self._ends):
            for key in [key for key in held_by_place if key[0].topic == topic]:
                del held_by_place[key]  # type: ignore[arg-type]
        self.moved_once = {place for place in self.moved_once if place.topic != topic}

    def _deletion_begins(self, topic: str) -> None:
        # A partition without a leader gets no decision on its deletion. A deletion waits for reassignments.
        of_topic = [held for place, held in self.records.items() if place.topic == topic]
        if not any(held.adding_replicas or held.removing_replicas for held in of_topic):
            self.records = {place: held for place, held in self.records.items() if place.topic != topic}

    def _take_in(self, through: int) -> None:
        while self._events and self._events[0].seq <= through:
            self._cause = self._events.popleft()
            for key, end in _reported(self._cause.event):
                self._ends[key] = max(self._ends.get(key, 0), end)

    def _configured(self, topic: str, config: Mapping[str, str]) -> None:
        self._min_isr[topic] = int(config.get("min.insync.replicas", "1"))

    def _broker(self, decision: BrokerDecision) -> None:
        self._row("engine", f"broker {decision.broker}", f"{decision.state} ({decision.reason})")
        if decision.broker_epoch < self._broker_epochs.get(decision.broker, -1):
            self._violated("B10", f"the epoch of broker {decision.broker} went back to {decision.broker_epoch}")
        if decision.state != "shutdown_allowed":  # only in decisions, never stored
            self._states[decision.broker] = decision.state
        elif self._states.get(decision.broker) != "fenced":
            self._states[decision.broker] = "controlled_shutdown"
        self._broker_epochs[decision.broker] = decision.broker_epoch

    def was_registered(self, broker: int, broker_epoch: int) -> bool:
        """Return whether a broker ever had an epoch, even if it has a newer one now."""
        return 0 <= broker_epoch <= self._broker_epochs.get(broker, -1)

    def _high_watermark(self, decision: HighWatermark) -> None:
        place = TopicPartition(decision.topic, decision.partition)
        record, high_watermark = self.records.get(place), decision.high_watermark
        if record is None:
            self._violated("C5", f"{place}: {high_watermark} was decided, and there is no such partition any more")
            return
        before = self._high_watermarks.get(place, 0)
        self._high_watermarks[place] = high_watermark
        if high_watermark <= before:
            return
        enough = min(self._min_isr[place.topic], len(record.replicas))
        if len(record.isr) < enough:
            self._violated("C7", f"{place}: {before} -> {high_watermark} with the ISR {record.isr}, {enough} needed")
        for member in record.isr:
            log_end = self._ends.get((place, member, decision.leader_epoch), -1)
            if log_end < high_watermark or decision.leader_epoch != record.leader_epoch:
                self._violated("C5", f"{place}: {high_watermark} decided, and {member} reported {log_end} in its epoch")

    def _leader_and_isr(self, now: LeaderAndIsr) -> None:
        place = TopicPartition(now.topic, now.partition)
        leads = f"leader {now.leader} epoch {now.leader_epoch}.{now.partition_epoch} isr {now.isr} ({now.reason})"
        self._row("engine", f"{place.topic}-{place.partition}", leads)
        before = self.records.get(place)
        self.records[place] = self.decided[now.topic_id, now.partition, now.partition_epoch] = now
        if before is not None and now.replicas != before.replicas:
            self.moved_once.add(place)
        request = self._cause.event if self._cause is not None else None
        joined = request.isr if isinstance(request, AlterIsr) else ()
        if isinstance(request, ReplicaLog) and not now.unclean:
            # Its log is proven complete: it is eligible from now on, and may lead at once.
            joined = (request.broker,)
        for invariant, what in [*shape_of(now), *(step_of(before, now, joined) if before is not None else ())]:
            self._violated(invariant, f"{place}: {what}")
        if now.leader != NO_LEADER and self._leaders.setdefault((place, now.leader_epoch), now.leader) != now.leader:
            self._violated("B3", f"{place}: epoch {now.leader_epoch} has two leaders")
        if now.is_new and self._sizes.setdefault((now.topic, now.seq), len(now.replicas)) != len(now.replicas):
            self._violated("A14", f"{place} was created with {len(now.replicas)} replicas, others of it with another")
        if now.reason == Reason.TOPIC_DELETED:
            del self.records[place]
        if before is not None and isinstance(request, AlterIsr) and now.partition_epoch > before.partition_epoch:
            self._by_leader(place, before, request)

    def _by_leader(self, place: TopicPartition, before: LeaderAndIsr, request: AlterIsr) -> None:
        held = (before.leader, before.leader_epoch, before.partition_epoch)
        if (request.broker, request.leader_epoch, request.partition_epoch) != held:
            self._violated("B6", f"{place}: {request} was accepted when {held} was committed")
        epochs = request.isr_epochs or (-1,) * len(request.isr)
        for member, epoch in zip(request.isr, epochs, strict=True):
            if self._states.get(member) != "active":
                self._violated("B7", f"{place}: {member} is {self._states.get(member)}, and may be in {request.isr}")
            if epoch not in (-1, self._broker_epochs[member]):
                self._violated("B7", f"{place}: {member} is not the incarnation that its leader saw")


def _reported(event: object) -> Iterator[tuple[tuple[TopicPartition, int, int], int]]:
    """Give the log ends that an event reports, each by partition, broker and leader epoch."""
    if isinstance(event, LogEndOffset):
        yield (TopicPartition(event.topic, event.partition), event.broker, event.leader_epoch), event.log_end_offset
    elif isinstance(event, LogEndOffsets):
        for named in event.topics:
            for row in named.partitions:
                place = TopicPartition(named.topic, row.partition)
                yield (place, event.broker, row.leader_epoch), row.log_end_offset
