"""Checks of replicas at every moment (A, C and D of docs/invariants.md).

The problem: a record may be lost long before a reader misses it. If only the logs at the end of a simulation were
compared, a loss that a later copy repairs would never be seen, and any other would be seen far from its cause.

The insight: one list for each partition, ``committed``, holds what must never be lost: every record that was ever below
a decided high watermark. It only grows, and everything else is compared with it at the moment of each change:

    a broker's callback ends   what its replicas show and cut off      look_over
    the engine commits         each member of an ISR, and its leader   decided
    a client gets an answer    what was acknowledged or read           clients_seen

Some losses are allowed: if all members of an ISR crash with unflushed records, or if a leader is elected uncleanly.
Such partitions are in ``may_lose_records``, where only the other checks count.

Most callbacks change nothing that a replica shows, so a glance at six fields comes before each look. Without it the
checks would take most of a simulation's time. ``decisions_seen`` checks the decisions themselves, and ``brokers_seen``
the brokers' other behaviour.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from brokers.mock.log.log import Log
from brokers.mock.replicas.partition import Partition, Role
from state.decisions import HighWatermark, LeaderAndIsr, TopicDecision
from state.events import TopicPartition
from state.ids import NO_LEADER
from tests.simulation.broker import SimulatedBroker
from tests.simulation.brokers_seen import BrokersSeen
from tests.simulation.clients_seen import ClientsSeen
from tests.simulation.decisions_seen import DecisionsSeen
from tests.simulation.engine import Batch
from tests.simulation.logs_seen import LogsSeen, Record, Replica, agree


class _View(NamedTuple):
    """A replica as its broker showed it at the last look."""

    log_end_offset: int
    high_watermark: int
    role: Role
    leader_epoch: int
    partition_epoch: int
    reporting_epoch: int | None


class Checkers:
    """The checks of a whole simulation.

    ``violated`` takes an invariant's id and what is wrong; ``row`` takes a trace row.
    """

    def __init__(self, violated: Callable[[str, str], None], row: Callable[[str, str, str], None]) -> None:
        self.logs = LogsSeen()
        self.committed: dict[TopicPartition, list[Record]] = {}
        # Brokers whose machine crashed, so that they may have lost unflushed records. They count until they register
        # again.
        self.lost_tails: set[int] = set()
        # The same brokers, also after they have registered again.
        self._ever_lost_tails: set[int] = set()
        # Partitions whose whole ISR lost its tail, or that have an unclean leader: they may lose records (D7).
        self.may_lose_records: set[TopicPartition] = set()
        self.brokers = BrokersSeen(violated)
        self.clients = ClientsSeen(violated, row, self.committed, self.may_lose_records)
        self.unclean_allowed = False
        self._violated = violated
        self._row = row
        self._decisions = DecisionsSeen(violated, row)
        self._views: dict[Replica, _View] = {}
        self._logs_held: dict[Replica, Log] = {}
        self._counts: dict[int, int] = {}
        self._glances: dict[Partition, _View] = {}

    # Replicas

    def restarted(self, broker: int) -> None:
        """Forget what a broker's former incarnation showed. Its logs are read again when it opens them."""
        self._counts.pop(broker, None)
        for replica in [r for r in self._views if r.broker == broker]:
            del self._views[replica]

    def lost_tail(self, broker: int) -> None:
        """Note that a broker's logs may have lost their tails."""
        self.lost_tails.add(broker)
        self._ever_lost_tails.add(broker)
        self.may_lose_records |= {
            place for place, record in self._decisions.records.items() if set(record.isr) <= self.lost_tails
        }

    def look_over(self, broker: SimulatedBroker) -> None:
        """Check all replicas of a broker. The log of a replica that is no longer there counts as deleted."""
        held = broker.partitions
        for partition in held.values():
            self._look_at(broker, partition)
        if len(held) != self._counts.get(broker.id, 0):
            self._counts[broker.id] = len(held)
            places = set(held)
            for replica in [r for r in self._views if r.broker == broker.id and r.place not in places]:
                self._row(f"broker-{replica.broker}", "deleted", f"{replica.place.topic}-{replica.place.partition}")
                del self._views[replica]
                self.logs.of(*replica).clear()

    def _look_at(self, broker: SimulatedBroker, partition: Partition) -> None:
        view = _View(
            partition.log.log_end_offset,
            partition.high_watermark,
            partition.role,
            partition.leader_epoch,
            partition.partition_epoch,
            partition.reporting_epoch,
        )
        # Most callbacks change nothing that a replica shows.
        if self._glances.get(partition) == view:
            return
        self._glances[partition] = view
        if self._decisions.topic_ids.get(partition.place.topic) != partition.topic_id:
            return  # the broker does not know yet that the topic was deleted and its name reused
        replica = Replica(partition.broker, partition.place)
        if self._logs_held.get(replica) is not partition.log:
            # Another incarnation, or the log was deleted and recreated between two looks.
            self._logs_held[replica] = partition.log
            self._views.pop(replica, None)
        before = self._views.get(replica)
        if view != before:
            self._views[replica] = view
            self._changed(replica, partition, before, view)
            decided = self._decisions.decided.get((partition.topic_id, partition.place.partition, view.partition_epoch))
            self.brokers.holds(partition, decided)
            registered = self._decisions.was_registered(broker.id, broker.broker_epoch)
            self.brokers.lifecycle_state(broker.id, broker.lifecycle_state, registered)
            if not broker.is_stopping:
                self.brokers.fetchers(partition, broker.fetched_from(partition.place))

    def _changed(self, replica: Replica, partition: Partition, before: _View | None, view: _View) -> None:
        name = _name(replica)
        committed = self.committed.setdefault(replica.place, [])
        self._row(
            f"broker-{replica.broker}",
            f"{replica.place.topic}-{replica.place.partition}",
            f"{view.role.value:<8} epoch {view.leader_epoch}.{view.partition_epoch} end {view.log_end_offset}"
            f" hw {view.high_watermark}",
        )
        if before is None:
            wrong = self.logs.reread(replica, partition.log)
        else:
            cut, wrong = self.logs.follow(replica, partition.log)
            self._cut(replica, cut, committed, view)
            if (view.leader_epoch, view.partition_epoch) < (before.leader_epoch, before.partition_epoch):
                self._violated("B5", f"{name} went back from {before} to {view}")
            same_reign = before.role is view.role is Role.leader and before.leader_epoch == view.leader_epoch
            if same_reign and view.high_watermark < before.high_watermark:
                self._violated("C6", f"{name} leads, and its high watermark went back: {before} -> {view}")
        for what in wrong:
            self._violated("A1", f"{name}: {what}")
        if not 0 <= view.high_watermark <= view.log_end_offset:
            self._violated("A3", f"{name}: high watermark {view.high_watermark}, log end {view.log_end_offset}")
        if view.role is Role.leader and partition.leader != partition.broker:
            self._violated("A4", f"{name} acts as leader, although it knows {partition.leader} as the leader")
        if view.reporting_epoch is not None and replica.place not in self.may_lose_records:
            self._shown(replica, committed, view)
        if view.role is Role.leader and replica.place not in self.may_lose_records:
            self.led(partition, view.high_watermark)

    def _cut(self, replica: Replica, cut: list[Record], committed: list[Record], view: _View) -> None:
        if cut:
            self._row(f"broker-{replica.broker}", "truncated", f"{len(cut)} records, to {view.log_end_offset}")
        end = view.log_end_offset
        if cut and view.role is not Role.follower:
            self._violated("D9", f"{_name(replica)} cut its log to {end} as {view.role.value}")
        # A replica outside the ISR may follow a deposed leader. It may cut off its copies, because they do not count.
        record = self._decisions.records.get(replica.place)
        counts = record is not None and replica.broker in record.isr and replica.place not in self.may_lose_records
        if cut and counts and committed[end : end + 1] == cut[:1]:
            self._violated("D9", f"{_name(replica)} cut off the committed record at {end}")

    def _shown(self, replica: Replica, committed: list[Record], view: _View) -> None:
        """Compare the records below a replica's high watermark with the committed ones."""
        if view.high_watermark > len(committed):
            self._violated(
                "C4", f"{_name(replica)} shows {view.high_watermark} records, but only {len(committed)} are committed"
            )
        elif not agree(self.logs.of(*replica), committed, view.high_watermark):
            self._violated(
                "D5", f"{_name(replica)} holds records below {view.high_watermark} that differ from the committed ones"
            )

    def led(self, partition: Partition, high_watermark: int) -> None:
        """Compare a leader's visible records with its ISR's logs. Members may have left a stale leader's ISR."""
        decisions, place = self._decisions, partition.place
        record = decisions.records.get(place)
        if record is None:
            return
        is_stale = record.partition_epoch != partition.partition_epoch
        if is_stale and place in decisions.moved_once:
            return
        lost = self._ever_lost_tails if is_stale else self.lost_tails
        own = self.logs.of(partition.broker, place)
        for member in partition.isr:
            log = self.logs.of(member, place)
            if member not in lost and not agree(own, log, high_watermark):
                shown = f"broker {partition.broker} leads {place} and shows {high_watermark} records"
                what = f"broker {member} of its ISR {partition.isr} ends at {len(log)}, or holds other records"
                self._violated("D2", f"{shown}, but {what}")

    # Decisions

    def decided(self, batch: Batch) -> None:
        """Check a committed batch of decisions."""
        decisions = self._decisions
        decisions.begin(batch)
        for decision in batch.decisions:
            decisions.look_at(decision)
            match decision:
                case LeaderAndIsr():
                    self._elected(decision)
                case HighWatermark():
                    self._commit(TopicPartition(decision.topic, decision.partition), decision.high_watermark)
                case TopicDecision(state="deleted"):
                    self._forget(decision.topic)
        decisions.end(batch.clusters)
        self.lost_tails -= decisions.registered
        for place, record in decisions.records.items():
            if place not in self.may_lose_records:
                self._hold_committed(place, (*record.isr, *(record.elr or ())), record.leader)

    def _elected(self, decision: LeaderAndIsr) -> None:
        place = TopicPartition(decision.topic, decision.partition)
        if (decision.isr and set(decision.isr) <= self.lost_tails) or decision.unclean:
            self.may_lose_records.add(place)
        if decision.unclean and not self.unclean_allowed:
            self._violated("E1", f"{place}: {decision.leader} was elected uncleanly, although no setting allows it")

    def _forget(self, topic: str) -> None:
        for place in [place for place in self.committed if place.topic == topic]:
            del self.committed[place]
            self.may_lose_records.discard(place)
        for replica in [replica for replica in self.logs.records if replica.place.topic == topic]:
            self.logs.records[replica].clear()
            self._views.pop(replica, None)
        self._decisions.forget(topic)
        self.clients.forget(topic)

    def _commit(self, place: TopicPartition, high_watermark: int) -> None:
        if place in self.may_lose_records or place not in self._decisions.records:
            return
        committed = self.committed.setdefault(place, [])
        self._row("engine", f"{place.topic}-{place.partition}", f"high watermark {high_watermark}")
        if high_watermark <= len(committed):
            return
        members = [m for m in self._decisions.records[place].isr if m not in self.lost_tails]
        holding = [self.logs.of(member, place) for member in members]
        if not all(agree(log, holding[0], high_watermark) for log in holding):
            ends = {member: len(self.logs.of(member, place)) for member in members}
            self._violated(
                "D1", f"{place}: high watermark {high_watermark} was decided, but not all of the ISR hold it: {ends}"
            )
        if holding:
            self.clients.committed(place, holding[0][len(committed) : high_watermark])
            self.committed[place] = holding[0][:high_watermark]

    def _hold_committed(self, place: TopicPartition, isr: Sequence[int], leader: int) -> None:
        committed = self.committed.get(place, [])
        for member in isr:
            log = self.logs.of(member, place)
            if member in self.lost_tails or agree(log, committed, len(committed)):
                continue
            invariant = "D4" if member == leader != NO_LEADER else "D3"
            what = f"{place}: {member} of {isr} (ISR, ELR) lacks some of the {len(committed)} committed records"
            self._violated(invariant, f"{what}: its log ends at {len(log)}, and the leader is {leader}")


def _name(replica: Replica) -> str:
    return f"broker {replica.broker} of {replica.place.topic}-{replica.place.partition}"
