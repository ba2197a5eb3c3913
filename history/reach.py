"""How far back a bus goes."""

from typing import NamedTuple

from bus.interface import Bus, BusError


class BeyondReachError(BusError):
    """A request for what the bus no longer has, or for what is not decided yet."""


class Reach(NamedTuple):
    """The span in which the state can be rebuilt, and where the decisions begin."""

    # The state can be rebuilt as of each seq from this one on.
    state_from: int
    # The bus's time there; None at the beginning of the log.
    state_from_ms: int | None
    # The seq of the oldest decision that is left; None if none is.
    decisions_from: int | None
    # Everything through it is decided.
    decided: int


def oldest_seq(bus: Bus) -> int | None:
    """Return the seq of the oldest decision that retention left; None if there is no decision."""
    oldest = bus.decisions((0, -1), 1, passing_over=True)
    return oldest[0].seq if oldest else None


def reach_of(bus: Bus) -> Reach:
    """Return how far back ``bus`` goes now. Retention moves this forward."""
    decided = bus.decided_seq()
    decisions_from = oldest_seq(bus)
    kept_after = bus.kept_after()
    if kept_after == 0:
        return Reach(0, None, decisions_from, decided)
    usable = [snapshot for snapshot in bus.snapshots() if snapshot.seq >= kept_after]
    if usable:
        return Reach(usable[0].seq, usable[0].time_ms, decisions_from, decided)
    return Reach(decided, None, decisions_from, decided)


def check_reached(bus: Bus, seq: int) -> Reach:
    """Return the reach of ``bus``. Raises ``BeyondReachError`` if the state as of ``seq`` is outside of it."""
    reach = reach_of(bus)
    if seq < reach.state_from:
        raise BeyondReachError(
            f"the state as of seq {seq} can no longer be rebuilt: the oldest one that can is that of seq "
            f"{reach.state_from} (history.ms and history.events say how far back that is; see 'isrflow history')"
        )
    if seq > reach.decided:
        raise BeyondReachError(f"seq {seq} is not decided yet: decisions go through seq {reach.decided}")
    return reach
