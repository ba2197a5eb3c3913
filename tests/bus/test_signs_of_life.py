"""What every bus tells a standby: which job has claimed, whether it ticks, and whether it has ended.

The buses on Kafka are on the node of ``kafka_servers``.
"""

import pytest

from bus.interface import TICK_SOUGHT_MAX, Bus, OvertakenError, Page
from tests.support.waiting import wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


def test_a_claim_that_must_succeed_a_certain_epoch_is_refused_after_another_claim(bus: Bus, other: Bus) -> None:
    assert bus.claim("first", {}, 1, after_epoch=0).controller_epoch == 1
    wait_until(lambda: other.claimed_epoch() == 1, "the claim to be readable")
    before = other.last_seq()
    with pytest.raises(OvertakenError, match="another job claimed controller epoch 1 first"):
        other.claim("late", {}, 2, after_epoch=0)
    assert other.last_seq() == before
    # The refused claim has not fenced the job that decides.
    bus.commit(1, bus.publish([EVENT]), [], [])
    assert other.claim("second", {}, 3, after_epoch=1).controller_epoch == 2


def test_a_job_that_resigns_is_known_to_have_ended_and_a_fenced_one_changes_nothing(bus: Bus, other: Bus) -> None:
    epoch = bus.claim("first", {}, 1).controller_epoch
    assert other.resigned_epoch() == 0
    through = bus.publish([EVENT])
    bus.commit(epoch, through, [], [Page(0, 0, b"state")])
    bus.resign(epoch)
    wait_until(lambda: other.resigned_epoch() == epoch, "the resignation to be readable")
    wait_until(lambda: bus.decided_seq() == other.decided_seq() == through, "the commit to be readable")
    later = other.claim("second", {}, 2).controller_epoch
    assert (later, other.resigned_epoch()) == (epoch + 1, epoch)
    bus.resign(epoch)
    assert (other.claimed_epoch(), other.resigned_epoch()) == (later, epoch)
    other.commit(later, other.publish([EVENT]), [], [])


def test_a_tick_among_the_newest_events_is_seen(bus: Bus, other: Bus) -> None:
    bus.publish([EVENT])
    assert other.newest_tick() == 0
    tick = bus.publish_own([b'{"kind":"tick","time_ms":1,"controller_epoch":1}'])
    wait_until(lambda: other.newest_tick() == tick, "the tick to be readable")
    bus.publish([EVENT] * (TICK_SOUGHT_MAX - 1))
    assert other.newest_tick() == tick
    bus.publish([EVENT])
    wait_until(lambda: other.newest_tick() == 0, "the tick to be too old")
    assert bus.publish_own([b'{"kind":"tick","time_ms":1,"controller_epoch":1}']) == bus.newest_tick()
