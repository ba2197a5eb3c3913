"""Which replicas outside the ISR still have every committed record (KIP-966; Kafka's ``PartitionChangeBuilder``).

A leader commits only while the ISR has min.insync.replicas members. So a replica that leaves an ISR which is then
smaller has every committed record until the ISR is large enough again. It is eligible: it may lead without a loss, if
its broker has not lost the end of its log.

    replicas 1,2,3   min.insync.replicas 2

    isr 1,2,3    elr             3 leaves: 1 and 2 commit without it
    isr 1,2      elr             2 leaves: 1 commits nothing alone
    isr 1        elr 2           1 leaves
    isr          elr 1,2         1 crashes, and its log may have lost its end
    isr          elr 2           2 leads
    isr 2        elr             1 and 3 catch up
    isr 1,2,3    elr

Kafka applies this before an election and not after it. With min.insync.replicas 1 a new leader commits alone, so the
replicas that were eligible beside it are not eligible any more. Hence it is applied to the result of the whole change.
"""

from collections.abc import Collection

from state.ids import NO_LEADER

Ids = tuple[int, ...]


def eligible_after(
    former_isr: Ids, former_elr: Ids, isr: Ids, *, replicas: Ids, min_isr: int, unproven: Collection[int] = ()
) -> Ids:
    """Return the eligible replicas after a change, in order of assignment.

    ``isr`` and ``replicas`` are those after the change, and ``min_isr`` is the topic's min.insync.replicas. The logs of
    ``unproven`` replicas may lack committed records.
    """
    if len(isr) >= min(min_isr, len(replicas)):
        return ()
    complete = {*former_isr, *former_elr}.difference(isr, unproven)
    return tuple([replica for replica in replicas if replica in complete]) if complete else ()


def former_members_after(
    former: Ids,
    former_isr: Ids,
    former_elr: Ids,
    isr: Ids,
    elr: Ids,
    *,
    replicas: Ids,
    min_isr: int,
    unproven: Collection[int] = (),
    crashed: Collection[int] = (),
) -> Ids:
    """Return the replicas that had every committed record until their brokers crashed, in order of assignment.

    ``crashed`` are those of the ``unproven`` whose log is the one that they had, perhaps without its end. As with
    eligible replicas, none is left once the ISR is large enough: something may be committed without them.
    """
    if len(isr) >= min(min_isr, len(replicas)):
        return ()
    found = {*former}.difference(unproven) | {*former_isr, *former_elr, *former}.intersection(crashed)
    return tuple([replica for replica in replicas if replica in found and replica not in isr and replica not in elr])


def last_known_after(
    former: Ids, former_leader: int, former_isr: Ids, former_elr: Ids, *, leader: int, isr: Ids, replicas: Ids
) -> Ids:
    """Return the last leader of a partition that has none, or else the last member of its ISR or an eligible replica.

    At most one replica is returned, and one as soon as the ISR is empty. It matters once no replica is eligible either.
    """
    if leader != NO_LEADER:
        return ()
    known = (*former, former_leader) if isr else (*former, former_leader, *former_isr, *former_elr)
    return next(((one,) for one in known if one in replicas), ())
