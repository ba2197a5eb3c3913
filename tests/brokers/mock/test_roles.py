"""What changes as a replica leads, follows and stops, and what does not."""

from pathlib import Path

import pytest

from tests.brokers.mock.test_partition import appended, decided_leader, replica


def test_each_stretch_of_leading_is_a_term_of_its_own(tmp_path: Path) -> None:
    partition, terms = replica(tmp_path), []
    # The leader; None where the replica is stopped.
    for leader_epoch, leader in enumerate((1, 1, 2, 3, None, 1, None, None, 2)):
        if leader is None:
            partition.stop()
        elif leader == 1:
            partition.make_leader(decided_leader(1, leader_epoch), 0, 0)
        else:
            partition.make_follower(decided_leader(leader, leader_epoch), 0)
        terms.append(partition.term)
    assert terms == [1, 1, 2, 2, 2, 3, 4, 4, 4]


def test_a_replica_takes_the_high_watermark_when_it_begins_to_follow_and_keeps_its_own_afterwards(
    tmp_path: Path,
) -> None:
    partition = appended(replica(tmp_path), 0, 0, 0)
    assert partition.high_watermark == 0
    partition.make_follower(decided_leader(2, 0), 2)
    assert partition.high_watermark == 2
    partition.make_follower(decided_leader(3, 1), 1)
    assert partition.high_watermark == 2
    partition.make_leader(decided_leader(1, 2), 3, 0)
    partition.make_follower(decided_leader(2, 3), 1)
    assert partition.high_watermark == 1


def test_a_new_leader_assumes_that_only_members_of_the_isr_have_caught_up(tmp_path: Path) -> None:
    partition = replica(tmp_path)
    partition.make_leader(decided_leader(1, 0, isr=(1, 3)), 0, now_ms=500)
    assert {follower: state.caught_up_ms for follower, state in partition.followers.items()} == {2: 0, 3: 500}


@pytest.mark.parametrize("leads", [True, False])
def test_a_replica_that_follows_nobody_drops_the_responses_of_a_former_leader(tmp_path: Path, leads: bool) -> None:
    leader, other = appended(replica(tmp_path, 2), 0, 0), appended(replica(tmp_path), 0)
    other.make_follower(decided_leader(2, 3), 0)
    if leads:
        other.make_leader(decided_leader(1, 3, 4), 0, 0)
    else:
        other.stop()
    assert not other.append_as_follower(3, 1, leader.log.read(1, 1, 2))
    assert not other.truncate(3, 0)
    assert not other.restart_at(3, 7)
    other.follow_high_watermark(3, 1)
    assert (other.log.log_end_offset, other.high_watermark) == (1, 0)


def test_truncation_lowers_the_high_watermark_and_never_raises_it(tmp_path: Path) -> None:
    for decided, offset, left in ((1, 2, 1), (3, 2, 2)):
        partition = appended(replica(tmp_path, decided), 0, 0, 0)
        partition.make_follower(decided_leader(2, 3), decided)
        assert partition.truncate(3, offset)
        # Records that come again are not committed before the leader says so.
        appended(partition, 0, 0)
        assert partition.high_watermark == left
