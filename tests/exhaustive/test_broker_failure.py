"""Every ISR, leader, liveness and unclean flag of up to four replicas, against slow, obviously right rules."""

from collections.abc import Iterator
from itertools import chain, combinations, permutations, product
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from controller_logic.apply import apply
from controller_logic.candidates import obstacle_of, passed_over
from controller_logic.election import Elected, elect_away, elect_first, elect_offline, elect_preferred
from controller_logic.partition_machine import elected_online, without
from controller_logic.replica_machine import online_replicas, states_with_offline
from state.broker import Broker, BrokerState
from state.ids import NO_LEADER
from state.invariants import broken_rules
from state.obstacle import Obstacle
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaState

Ids = tuple[int, ...]


class Case(NamedTuple):
    replicas: Ids
    isr: Ids
    leader: int
    active: Ids
    unclean: bool

    @property
    def partition(self) -> Partition:
        """Return the partition as it was when all replicas were online."""
        is_led = self.leader != NO_LEADER
        state = PartitionState.OnlinePartition if is_led else PartitionState.OfflinePartition
        states = (ReplicaState.OnlineReplica,) * len(self.replicas)
        return Partition(0, state, self.replicas, states, self.isr, self.leader, leader_epoch=5, partition_epoch=8)


def subsets(ids: Ids, least: int = 0) -> Iterator[Ids]:
    return chain.from_iterable(combinations(ids, size) for size in range(least, len(ids) + 1))


def cases(size: int) -> Iterator[Case]:
    replicas = tuple(range(size, 0, -1))
    for members in subsets(replicas, 1):
        for isr in permutations(members):
            for leader in (*members, NO_LEADER):
                for active in subsets(replicas):
                    for unclean in (False, True):
                        yield Case(replicas, isr, leader, active, unclean)


def expected_election(case: Case) -> Elected | None:
    """Return the expected leader: the first replica that is in sync and active; if unclean, the first active one."""
    in_sync_and_active = set(case.isr) & set(case.active)
    if in_sync_and_active:
        leader = min(in_sync_and_active, key=case.replicas.index)
        return Elected(leader, tuple(member for member in case.isr if member in case.active), unclean=False)
    if case.unclean and case.active:
        leader = min(case.active, key=case.replicas.index)
        return Elected(leader, (leader,), unclean=True)
    return None


def expected_election_without(case: Case, lost: Ids) -> Elected | None:
    """Return the expected leader if some logs are lost: such a replica leads uncleanly, and if there is no other."""
    with_log = case._replace(
        isr=tuple(member for member in case.isr if member not in lost),
        active=tuple(replica for replica in case.active if replica not in lost),
    )
    return expected_election(with_log) or expected_election(case._replace(isr=()))


def expected_isr_after_loss(case: Case) -> Ids:
    """Return the expected ISR: its active members; if none is left, its leader or first member."""
    left = tuple(member for member in case.isr if member in case.active)
    return left or ((case.leader,) if case.leader != NO_LEADER else case.isr[:1])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_an_offline_election_takes_the_first_live_member_of_the_isr(size: int) -> None:
    for case in cases(size):
        online = tuple(replica for replica in case.replicas if replica in case.active)
        assert elect_offline(case.isr, online, unclean_allowed=case.unclean) == expected_election(case), case


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_an_election_away_from_a_leader_is_an_offline_election_that_is_never_unclean(size: int) -> None:
    for case in cases(size):
        online = tuple(replica for replica in case.replicas if replica in case.active)
        assert elect_away(case.isr, online) == expected_election(case._replace(unclean=False)), case


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_preferred_election_takes_the_preferred_replica_or_nobody(size: int) -> None:
    for case in cases(size):
        online = tuple(replica for replica in case.replicas if replica in case.active)
        preferred = case.replicas[0]
        may = preferred in case.active and preferred in case.isr
        expected = Elected(preferred, case.isr, unclean=False) if may else None
        assert elect_preferred(case.replicas, case.isr, online) == expected, case


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_first_election_takes_all_online_replicas_into_the_isr(size: int) -> None:
    for online in subsets(tuple(range(size, 0, -1))):
        assert elect_first(online) == (Elected(online[0], online, unclean=False) if online else None)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_set_of_replicas_can_be_lost(size: int) -> None:
    for case in cases(size):
        before = case.partition
        lost = frozenset(case.replicas) - frozenset(case.active)
        states = states_with_offline(before, lost)
        online = online_replicas(before.replicas, states, frozenset(case.active))
        change = without(before, lost, states, online, unclean_allowed=case.unclean, keeps_last=True)
        after = before if change is None else apply(before, change)
        elected = expected_election(case) if case.leader in lost else None
        if elected is not None:
            leader, isr = elected.leader, elected.isr
        else:
            leader = NO_LEADER if case.leader in lost else case.leader
            isr = expected_isr_after_loss(case)
        assert (after.leader, after.isr) == (leader, isr), case
        differs = (leader, isr) != (case.leader, case.isr)
        assert (after.leader_epoch, after.partition_epoch) == (5 + differs, 8 + differs), case
        unclean = elected is not None and elected.unclean
        assert (change is not None and change.unclean) == unclean, case
        assert (after.leader_recovery_state == LeaderRecoveryState.RECOVERING) == unclean, case
        assert [r for r, s in zip(after.replicas, after.replica_states, strict=True) if s == 3] == [
            replica for replica in case.replicas if replica in lost
        ], case
        assert broken_rules(before, after) == [], case


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_leaderless_partition_gets_a_leader_if_a_replica_may_lead(size: int) -> None:
    for case in cases(size):
        if case.leader != NO_LEADER:
            continue
        online = tuple(replica for replica in case.replicas if replica in case.active)
        change = elected_online(case.partition, online, unclean_allowed=case.unclean)
        expected = expected_election(case)
        if expected is None:
            assert change is None, case
        else:
            assert change is not None, case
            after = apply(case.partition, change)
            assert (after.leader, after.isr, after.leader_epoch) == (expected.leader, expected.isr, 6), case


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_replica_that_came_back_without_its_log_leads_uncleanly_or_not_at_all(size: int) -> None:
    for case in cases(size):
        if case.leader != NO_LEADER:
            continue
        online = tuple(replica for replica in case.replicas if replica in case.active)
        for lost in subsets(case.replicas, 1):
            before = replace(case.partition, lost_logs=lost)
            change = elected_online(before, online, unclean_allowed=case.unclean)
            expected = expected_election_without(case, lost)
            if change is None or expected is None:
                assert (change, expected) == (None, None), (case, lost)
                continue
            after = apply(before, change)
            assert (after.leader, after.isr, change.unclean, False) == expected, (case, lost)
            assert after.lost_logs == (), "who follows a leader needs no log"
            assert broken_rules(before, after) == [], (case, lost)
            assert after.leader not in lost or change.unclean, (case, lost)


def broker(state: BrokerState) -> Broker:
    return Broker(1, 1, "first", state, None, (), (), 0)


def test_a_replica_without_an_obstacle_is_online_and_in_sync() -> None:
    for state in (BrokerState.fenced, BrokerState.active, BrokerState.controlled_shutdown):
        for replica_state in (ReplicaState.NewReplica, ReplicaState.OnlineReplica, ReplicaState.OfflineReplica):
            for is_in_sync, is_log_lost in product((False, True), repeat=2):
                held = broker(state)
                online = online_replicas((1,), (replica_state,), frozenset({1} if held.is_active else ()))
                obstacle = obstacle_of(held, replica_state, is_in_sync=is_in_sync, is_log_lost=is_log_lost)
                assert (obstacle is None) == (bool(online) and is_in_sync and not is_log_lost)
                assert (obstacle is Obstacle.LOG_LEFT_BEHIND) == (bool(online) and is_log_lost)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_an_election_takes_the_first_replica_that_it_has_no_obstacle_for(size: int) -> None:
    for case in cases(size):
        before = case.partition
        lost = frozenset(case.replicas) - frozenset(case.active)
        if case.leader not in lost:
            continue
        states = states_with_offline(before, lost)
        online = online_replicas(before.replicas, states, frozenset(case.active))
        change = without(before, lost, states, online, unclean_allowed=case.unclean, keeps_last=True)
        assert change is not None, case
        after = apply(before, change)
        brokers = {b: broker(BrokerState.active if b in case.active else BrokerState.fenced) for b in case.replicas}
        expected = {
            replica: Obstacle.BROKER_FENCED if replica in lost else Obstacle.NOT_IN_SYNC
            for replica in case.replicas
            if replica in lost or replica not in case.isr
        }
        if after.leader != NO_LEADER and not change.unclean:
            preferred = case.replicas[: case.replicas.index(after.leader)]
            expected = {replica: expected[replica] for replica in preferred}
        else:
            assert list(expected) == list(case.replicas), "nobody could be elected cleanly"
        assert passed_over(before.isr, after, brokers, unclean=change.unclean) == expected, case
