"""What must hold for every partition of Kafka under any controller. It needs no prediction."""

from collections.abc import Iterator

from controller_logic.broker_sets import BrokerSets
from state.divergence import INVARIANTS
from state.ids import NO_LEADER
from state.partition import Partition

LEADER_NOT_FENCED, LEADER_IN_ISR, NO_STRANGER, EPOCHS_RISE, LEADER_HAS_EPOCH, NO_FENCED_JOINS = INVARIANTS


def broken_by(
    before: Partition | None, after: Partition, brokers: BrokerSets, *, is_gap: bool
) -> Iterator[tuple[str, str]]:
    """Yield each invariant that a partition breaks, with what is wrong. ``before`` is None for a new partition."""
    leader = after.leader
    if leader != NO_LEADER and leader not in brokers.live:
        yield LEADER_NOT_FENCED, f"leader {leader} is fenced, or not registered"
    if leader != NO_LEADER and leader not in after.isr:
        yield LEADER_IN_ISR, f"leader {leader} is not in the ISR {_listed(after.isr)}"
    strangers = tuple([member for member in after.isr if member not in after.replicas])
    if strangers:
        yield NO_STRANGER, f"the ISR {_listed(after.isr)} has {_listed(strangers)}, not of {_listed(after.replicas)}"
    if before is None:
        return
    yield from _broken_epochs(before, after)
    # A leader that is fenced is told above.
    known = {*before.isr, leader}
    joined = tuple([member for member in after.isr if member not in known and member not in brokers.active])
    if joined and not is_gap:
        yield NO_FENCED_JOINS, f"{_listed(joined)} joined the ISR {_listed(after.isr)} while fenced or shutting down"


def _broken_epochs(before: Partition, after: Partition) -> Iterator[tuple[str, str]]:
    for name, former, now in (
        ("leader epoch", before.leader_epoch, after.leader_epoch),
        ("partition epoch", before.partition_epoch, after.partition_epoch),
    ):
        if now < former:
            yield EPOCHS_RISE, f"{name} {now} follows {former}"
            return
    if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
        yield LEADER_HAS_EPOCH, f"leader {after.leader} follows {before.leader} in leader epoch {after.leader_epoch}"


def _listed(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
