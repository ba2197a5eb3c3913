"""Elect a leader (Kafka's ``Election.scala`` and ``PartitionLeaderElectionAlgorithms``).

A leader must have every committed record. The ISR is the set of replicas that do, so a clean election takes the first
assigned replica that is both in sync and online. If there is none, it takes the first eligible one (KIP-966;
``eligible``). Only an unclean election takes any other replica, and it may lose records.

    replicas   1  2  3  4     in order of assignment, which is the order of preference
    isr           2     4
    online           3  4     their brokers are active (KIP-841), and their log directories not lost (KIP-112)
    elected             4     and the ISR becomes 4, because 2 is not online
                     3        uncleanly, if 4 were offline too; the ISR becomes 3

| election   | when                                | who                               | ISR afterwards       |
|------------|-------------------------------------|-----------------------------------|----------------------|
| first      | a new partition has no leader yet   | first online                      | all that are online  |
| offline    | the leader is gone                  | first online in the ISR           | those online         |
| eligible   | the same, no ISR member is online   | first online of the eligible      | the leader alone     |
| last known | the same, and none is left of both  | the last known leader, uncleanly  | the leader alone     |
| unclean    | the same, if the topic allows it    | first online                      | the leader alone     |
| away       | the leader shuts down               | as offline, but never unclean     | as there             |
| preferred  | an admin or the balance check asks  | first assigned, if it may         | unchanged            |
| reassigned | a reassignment ends                 | first target in the ISR           | unchanged            |

In every function ``online`` lists the assigned replicas that may lead now, in order of assignment. None means that no
replica can be elected.

Rejected: deriving ``unclean`` afterwards, from whether the new leader was in the ISR. During a reassignment Kafka
got that wrong (KAFKA-19212). Here the election says it.
"""

from typing import NamedTuple

Ids = tuple[int, ...]


class Elected(NamedTuple):
    """The result of an election."""

    leader: int
    # leader ∈ isr
    isr: Ids
    # Whether committed records may be lost.
    unclean: bool
    # Whether the leader was outside the ISR, and has every committed record.
    eligible: bool = False


def elect_first(online: Ids) -> Elected | None:
    """Elect the first leader of a new partition. No replica can lack a record, because there is none."""
    if not online:
        return None
    return Elected(online[0], online, unclean=False)


def elect_offline(
    isr: Ids, online: Ids, *, elr: Ids = (), last_known: Ids = (), unclean_allowed: bool
) -> Elected | None:
    """Elect a leader in place of one that is gone. The ISR keeps its order and loses the replicas that are offline.

    The last known leader is elected even where unclean elections are not allowed, because it was the last one that had
    every committed record, and no other replica is known to have more.
    """
    for replica in online:
        if replica in isr:
            return Elected(replica, tuple([member for member in isr if member in online]), unclean=False)
    for replica in online:
        if replica in elr:
            return Elected(replica, (replica,), unclean=False, eligible=True)
    if not (isr or elr):
        for replica in online:
            if replica in last_known:
                return Elected(replica, (replica,), unclean=True)
    if unclean_allowed and online:
        return Elected(online[0], (online[0],), unclean=True)
    return None


def elect_away(isr: Ids, online: Ids, *, elr: Ids = ()) -> Elected | None:
    """Elect a leader in place of one that shuts down, never uncleanly, because the old one still serves."""
    return elect_offline(isr, online, elr=elr, unclean_allowed=False)


def elect_preferred(replicas: Ids, isr: Ids, online: Ids) -> Elected | None:
    """Elect the first assigned replica, or none."""
    preferred = replicas[0]
    if preferred in online and preferred in isr:
        return Elected(preferred, isr, unclean=False)
    return None


def elect_reassigned(isr: Ids, online: Ids) -> Elected | None:
    """Elect the leader of a partition whose reassignment ends. ``online`` lists target replicas only."""
    for replica in online:
        if replica in isr:
            return Elected(replica, isr, unclean=False)
    return None
