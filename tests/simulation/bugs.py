"""Known bugs to inject into the real code. Each was, or nearly was, in some system; the checkers must find them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from brokers.mock.apis import produce
from brokers.mock.log.epochs import EndOffset
from brokers.mock.log.log import Log
from brokers.mock.replicas import fetcher, isr
from brokers.mock.replicas.partition import Partition, Role
from brokers.mock.replicas.truncation import Truncation
from controller_logic import isr as isr_rules
from controller_logic import replica_log, watermark
from state.partition import Partition as Record

_may_join = isr.may_join
_derived = watermark.derive_high_watermark
_make_follower = Partition.make_follower


def _joins_by_what_was_heard(partition: Partition, replica: int, reported_end_offset: int) -> bool:
    """Admit a follower that has only reached its leader's own, older high watermark."""
    return _may_join(partition, replica, 0)


def _joins_by_any_fetch(partition: Partition, replica: int, reported_end_offset: int) -> bool:
    """Admit a follower as soon as it fetches."""
    return replica in partition.followers and replica not in partition.isr


def _to_the_high_watermark(log: Log, high_watermark: int, leader: EndOffset) -> Truncation:
    """Truncate as before KIP-101."""
    return Truncation(min(high_watermark, log.log_end_offset), True)


def _nowhere(log: Log, high_watermark: int, leader: EndOffset) -> Truncation:
    """Do not truncate."""
    return Truncation(log.log_end_offset, True)


def _reports_before_truncating(partition: Partition) -> int | None:
    """Count a follower's log end before its log agrees with the leader's."""
    return None if partition.role is Role.none else partition.leader_epoch


def _without_the_last_member(partition: Record, min_isr: int, joiners: tuple[int, ...]) -> watermark.Derived | None:
    """Derive the high watermark from all of the ISR but its last member."""
    if len(partition.isr) > 1:
        partition = replace(partition, isr=tuple(m for m in partition.isr if m != partition.isr[-1]))
    return _derived(partition, min_isr, joiners)


def _leads_on(partition: Partition, decision: Any, high_watermark: int) -> None:
    """Continue as the leader after another one was elected, and so serve although fenced."""
    was_leader = partition.is_leader
    _make_follower(partition, decision, high_watermark)
    if was_leader:
        partition.role = Role.leader


def _settles_by_offset_alone(context: Any, appending: Any) -> bool:
    """Acknowledge by the high watermark alone, without a check that this broker still leads."""
    return bool(appending.partition.high_watermark >= appending.required)


def _never(*_: Any) -> None:
    return None


def _complete_by_its_own_word(batch: Any, partition: Record, event: Any) -> bool:
    """Take a crashed replica in by the high watermark that its own broker had stored, which is older."""
    return event.broker in partition.former_members and event.log_end_offset >= event.high_watermark


def _complete_by_the_crash(batch: Any, partition: Record, event: Any) -> bool:
    """Take a crashed replica in whatever it has left."""
    return event.broker in partition.former_members


# In histories with eligible replicas and crashes of machines.
BUGS_OF_PROOFS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "a crashed replica is eligible by its own, older high watermark": lambda: patch.object(
        replica_log, "is_complete", _complete_by_its_own_word
    ),
    "a crashed replica is eligible whatever is left of its log": lambda: patch.object(
        replica_log, "is_complete", _complete_by_the_crash
    ),
}
BUGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "a member joins by the high watermark its leader heard of": lambda: patch.object(
        isr, "may_join", _joins_by_what_was_heard
    ),
    "a member joins by any fetch": lambda: patch.object(isr, "may_join", _joins_by_any_fetch),
    "truncation to the high watermark": lambda: patch.object(fetcher, "truncation", _to_the_high_watermark),
    "no truncation": lambda: patch.object(fetcher, "truncation", _nowhere),
    "a follower reports before it truncates": lambda: patch.object(
        Partition, "reporting_epoch", property(_reports_before_truncating)
    ),
    "the high watermark passes over a member": lambda: patch.object(
        watermark, "derive_high_watermark", _without_the_last_member
    ),
    "a fenced leader serves on": lambda: patch.object(Partition, "make_follower", _leads_on),
    "an append is settled by its offset alone": lambda: patch.object(produce, "is_settled", _settles_by_offset_alone),
    "older partition epochs are accepted": lambda: patch.object(isr_rules.fencing, "fenced_version", _never),
    "reports about a namesake count": lambda: patch.object(isr_rules.fencing, "of_another_topic", _never),
    "restarted members are accepted": lambda: patch.object(isr_rules, "ineligible", _never),
}
