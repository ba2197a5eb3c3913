"""Check every trace a second time (leaders, epochs, the ISR). Complaints appear in the story's text."""

from msgspec import UNSET

from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER
from state.reason import Reason

MARK = "!! "


def complaints_about(before: LeaderAndIsr | None, after: LeaderAndIsr) -> list[str]:
    """List what is wrong with a partition, or with how it changed."""
    is_going = after.reason == Reason.TOPIC_DELETED
    wrong = {
        "the ISR is empty, and no other replica is known": not (after.isr or after.elr or after.last_known_elr),
        "the ISR has a member that is not assigned": not set(after.isr) <= set(after.replicas),
        "the leader is not in the ISR": after.leader != NO_LEADER and after.leader not in after.isr,
        "a partition without leader has several in sync": after.leader == NO_LEADER
        and len(after.isr) > 1
        and not is_going,
        "a leader that recovers is not alone": after.leader_recovery_state == "RECOVERING" and len(after.isr) > 1,
        "it is addressed to a broker that is not assigned": not set(after.to) <= set(after.replicas),
    }
    if before is not None:
        wrong |= _wrong_steps(before, after)
    return [f"{MARK}{after.topic}-{after.partition}: {what}" for what, is_so in wrong.items() if is_so]


def _wrong_steps(before: LeaderAndIsr, after: LeaderAndIsr) -> dict[str, bool]:
    leader_step = after.leader_epoch - before.leader_epoch
    partition_step = after.partition_epoch - before.partition_epoch
    # The change that ends a reassignment adds the new replicas and drops the old ones at once.
    lost = set(before.isr).isdisjoint(after.isr) and not set(after.isr) <= set(before.adding_replicas)
    has_records = not after.isr or (before.elr is not UNSET and set(after.isr) <= set(before.elr))
    return {
        "an epoch went back, or up by more than one": not 0 <= leader_step <= partition_step <= 1,
        "two leaders in one leader epoch": leader_step == 0 and before.leader != after.leader,
        "something changed, and the partition epoch did not": partition_step == 0
        and (before.isr, before.elr) != (after.isr, after.elr),
        "nobody of the former ISR is left, and the election was not unclean": lost
        and not has_records
        and not after.unclean,
        "an unclean leader is not recovering": after.unclean and after.leader_recovery_state != "RECOVERING",
    }
