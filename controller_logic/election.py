"""Elect a leader (Kafka's ``Election.scala`` and ``PartitionLeaderElectionAlgorithms``).

Every election is given ``online``: the assigned replicas that may lead now, in the order of their
assignment. A replica may lead when its broker is active (neither fenced nor shutting down, KIP-841)
and its log directory is not lost (KIP-112).
"""

from typing import NamedTuple


class Elected(NamedTuple):
    """Hold who leads and who is in sync from now on; ``unclean`` when records may be lost."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool


def elect_first(online: tuple[int, ...]) -> Elected | None:
    """Elect the first leader of a new partition: there is no record yet that a replica could lack."""
    if not online:
        return None
    return Elected(online[0], online, unclean=False)


def elect_offline(isr: tuple[int, ...], online: tuple[int, ...], *, unclean_allowed: bool) -> Elected | None:
    """Elect the leader of a partition whose leader is gone.

    The first assigned replica that is in sync; the ISR keeps its order and loses who is not online.
    With nobody in sync online, and where it is allowed, the first replica online: alone in the ISR.
    """
    for replica in online:
        if replica in isr:
            return Elected(replica, tuple([member for member in isr if member in online]), unclean=False)
    if unclean_allowed and online:
        return Elected(online[0], (online[0],), unclean=True)
    return None


def elect_away(isr: tuple[int, ...], online: tuple[int, ...]) -> Elected | None:
    """Elect a leader in place of one that shuts down; never an unclean one, for the old one still serves."""
    return elect_offline(isr, online, unclean_allowed=False)


def elect_preferred(replicas: tuple[int, ...], isr: tuple[int, ...], online: tuple[int, ...]) -> Elected | None:
    """Elect the first assigned replica, or nobody; the ISR stays as it is."""
    preferred = replicas[0]
    if preferred in online and preferred in isr:
        return Elected(preferred, isr, unclean=False)
    return None


def elect_reassigned(isr: tuple[int, ...], online: tuple[int, ...]) -> Elected | None:
    """Elect the leader of a partition whose reassignment completes: the first target replica in sync.

    ``online`` is of the target alone; the ISR stays as it is.
    """
    for replica in online:
        if replica in isr:
            return Elected(replica, isr, unclean=False)
    return None
