"""At every tick each high watermark equals that of a slow rule over all reports since the leader took over."""

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from state.cluster import State
from state.decisions import AnyDecision
from state.event_text import decode
from state.events import LogEndOffset, Tick
from state.ids import NO_LEADER
from state.partition import Partition, ReplicaState
from tests.support.world import World

BROKERS = (1, 2, 3, 4)
LAG_TIME_MAX_MS = 600
PAUSES_MS = (0, 0, 1, 100, 299, 300, 301, 600, 601)


class Report(NamedTuple):
    """A log end that the rules accepted, with its time on the engine's clock in ms."""

    broker: int
    end: int
    time_ms: int


class Watched(World):
    """A world of one partition whose high watermark is compared with the slow rule after every event."""

    def __init__(self, min_isr: int) -> None:
        self.reports: dict[int, list[Report]] = {}
        super().__init__(*BROKERS, replica_lag_time_max_ms=str(LAG_TIME_MAX_MS), min_insync_replicas=str(min_isr))
        self.min_isr = min_isr
        self.create("t", BROKERS[:3])

    @property
    def held(self) -> Partition | None:
        return self.partition("t") if self.state.topics.get("t") else None

    def publish_raw(self, raw: bytes) -> list[AnyDecision]:
        before, event = self.held, decode(raw)
        decisions = super().publish_raw(raw)
        after = self.held
        if before is not None and after is not None:
            if isinstance(event, LogEndOffset):
                report = Report(event.broker, event.log_end_offset, self.state.cluster.clock_ms)
                self.reports.setdefault(before.leader_epoch, []).append(report)
            reports = self.reports.get(after.leader_epoch, [])
            is_due = isinstance(event, Tick)
            should_be = expected(before, self.state, after, reports, self.min_isr) if is_due else before.high_watermark
            assert after.high_watermark == should_be, f"{raw!r} left {after}, reports were {reports}"
        return decisions

    @property
    def leader_end(self) -> int:
        partition = self.partition("t")
        return last_end(self.reports.get(partition.leader_epoch, []), partition.leader) or partition.high_watermark


def last_end(reports: list[Report], broker: int) -> int | None:
    return next((report.end for report in reversed(reports) if report.broker == broker), None)


def caught_up_times_ms(reports: list[Report], leader: int, broker: int) -> list[int]:
    """List the times at which ``broker`` had caught up: to its leader's end, or to that at its own previous report."""
    times: list[int] = []
    known_before: list[int] = []
    time_before_ms = 0
    for place, report in enumerate(reports):
        if report.broker == broker:
            leader_end = last_end(reports[:place], leader)
            if leader_end is not None and report.end >= leader_end:
                times.append(report.time_ms)
            elif known_before and report.end >= max(known_before):
                times.append(time_before_ms)
            known_before += [] if leader_end is None else [leader_end]
            time_before_ms = report.time_ms
    return times


def joining_ends(state: State, partition: Partition, reports: list[Report]) -> list[int]:
    """List the log ends of the replicas that may join the ISR and have recently caught up."""
    found = []
    for replica, replica_state in zip(partition.replicas, partition.replica_states, strict=True):
        broker = state.cluster.brokers.get(replica)
        may_join = broker is not None and broker.is_active and replica_state != ReplicaState.OfflineReplica
        end = last_end(reports, replica)
        if end is not None and may_join and replica not in partition.isr:
            oldest_ms = state.cluster.clock_ms - LAG_TIME_MAX_MS
            if any(time_ms >= oldest_ms for time_ms in caught_up_times_ms(reports, partition.leader, replica)):
                found.append(end)
    return found


def expected(before: Partition, state: State, partition: Partition, reports: list[Report], min_isr: int) -> int:
    """Return the high watermark by the slow rule: the ISR's lowest end, held back by replicas that join."""
    ends = [last_end(reports, member) for member in partition.isr]
    lowest = min((end for end in ends if end is not None), default=0)
    former = before.high_watermark
    if partition.leader == NO_LEADER or None in ends:
        return former
    if lowest < former:
        leader_end = last_end(reports, partition.leader)
        has_lost = before.high_watermark_epoch != partition.leader_epoch and (leader_end or 0) < former
        return lowest if has_lost and lowest == leader_end else former
    if len(ends) < min(min_isr, len(partition.replicas)):
        return former
    return max(former, min([lowest, *joining_ends(state, partition, reports)]))


def lead(world: Watched, a: int, b: int) -> None:
    partition = world.partition("t")
    if partition.leader != NO_LEADER:
        world.offsets("t", **{f"b{partition.leader}": world.leader_end + a % 3})


def follow(world: Watched, a: int, b: int) -> None:
    replicas = world.partition("t").replicas
    world.offsets("t", **{f"b{replicas[a % len(replicas)]}": max(0, world.leader_end - b % 4)})


def follow_all(world: Watched, a: int, b: int) -> None:
    lead(world, a, b)
    world.offsets("t", **{f"b{replica}": world.leader_end for replica in world.partition("t").replicas})


def follow_in_sync(world: Watched, a: int, b: int) -> None:
    lead(world, a, b)
    world.offsets("t", **{f"b{member}": world.leader_end for member in world.partition("t").isr})


def change_isr(world: Watched, a: int, b: int) -> None:
    partition = world.partition("t")
    others = [replica for place, replica in enumerate(partition.replicas) if a >> place & 1]
    if partition.leader != NO_LEADER:
        world.alter_isr("t", (partition.leader, *(other for other in others if other != partition.leader)))


def fence_or_start(world: Watched, a: int, b: int) -> None:
    world.beat(BROKERS[a % 4], fence=b % 2 == 0)


def shut_down(world: Watched, a: int, b: int) -> None:
    world.beat(BROKERS[a % 4], shutdown=True)


def lose_or_find_log(world: Watched, a: int, b: int) -> None:
    partition = world.partition("t")
    broker = partition.replicas[a % len(partition.replicas)]
    where = {"topic": "t", "partition": 0, "broker": broker, "leader_epoch": partition.leader_epoch}
    epoch, outcome = world.broker(broker).broker_epoch, "offline" if b % 2 else "follower"
    world.publish("replica_report", **where, broker_epoch=epoch, outcome=outcome)


def reassign(world: Watched, a: int, b: int) -> None:
    target = [BROKERS[(a + place) % 4] for place in range(1 + b % 3)]
    world.publish("alter_reassignment", topic="t", partition=0, replicas=None if b == 11 else target)


def elect_unclean(world: Watched, a: int, b: int) -> None:
    world.publish("elect_leaders", election_type="unclean", partitions=None)


Make = Callable[[Watched, int, int], None]
Move = tuple[Make, int, int, int]
MOVES: tuple[Make, ...] = (
    *[lead] * 4,
    *[follow] * 6,
    *[follow_all] * 4,
    *[follow_in_sync] * 4,
    *[change_isr] * 4,
    fence_or_start,
    fence_or_start,
    shut_down,
    lose_or_find_log,
    reassign,
    elect_unclean,
)
NUMBER = st.integers(0, 11)
MOVE = st.tuples(st.sampled_from(MOVES), NUMBER, NUMBER, st.sampled_from(PAUSES_MS))


@settings(max_examples=400, deadline=None)
@given(st.lists(MOVE, min_size=25, max_size=60) | st.lists(MOVE, max_size=30), st.integers(1, 2))
def test_every_high_watermark_follows_from_the_reports(drawn: list[Move], min_isr: int) -> None:
    world = Watched(min_isr)
    for move, a, b, pause_ms in drawn:
        move(world, a, b)
        world.tick(after_ms=pause_ms)
