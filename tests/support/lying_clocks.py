"""Random worlds whose clocks lie: authors' are off, the bus's is set, and ticks and claims are forged.

Under version 1 of the rules a lie moves time for all, and nothing more would happen: there clocks are right.
"""

from collections.abc import Iterable
from typing import Any

from bus.interface import EPOCH_MAX, Entry
from cli.replay import entries_of
from state.cluster import Cluster
from state.engine_events import ENGINE_KINDS
from state.ids import NO_TIME
from state.rules import ENGINE_CLOCK_RULES

HOUR_MS = 3_600_000
# By how much the bus's clock is off.
_SET = (0, 0, HOUR_MS, -HOUR_MS, 40_000, -500)
# By how much an author's is, by the remainder of its draw.
_AUTHORS = {3: 10_000, 7: HOUR_MS, 11: -HOUR_MS, 17: 10**15}
_REMAINDERS = 29


class Clocks:
    """Say of each event what its author and its bus hold of its time."""

    def __init__(self) -> None:
        self._bus_ahead_ms = 0

    def set_bus(self, place: int) -> None:
        """Set the bus's clock."""
        self._bus_ahead_ms = _SET[place % len(_SET)]

    def told(self, cluster: Cluster, kind: str, numbers: tuple[int, int, int], now: int) -> dict[str, Any]:
        """Give the fields of an event that tell its time, who made it, and what the bus knows of it."""
        if cluster.rules_version < ENGINE_CLOCK_RULES:
            return {"time_ms": now}
        a, b, c = numbers
        entered_ms = now + self._bus_ahead_ms if c % 5 else None
        known = {"entered_ms": entered_ms}
        if kind == "controller_started":
            return known | ({"time_ms": now} if a % 4 else {"time_ms": now + _SET[b % len(_SET)]})
        if kind in ENGINE_KINDS:
            return known | self._of_the_engine(cluster, a, b, now, entered_ms)
        return known | {"time_ms": now + _AUTHORS.get((a + 12 * b + 5 * c) % _REMAINDERS, 0)}

    def _of_the_engine(self, cluster: Cluster, a: int, b: int, now: int, entered_ms: int | None) -> dict[str, Any]:
        """Let some be nobody's, and some be told by a clock in microseconds where the bus knows better."""
        epoch = cluster.controller_epoch
        by_whom = {9: max(0, epoch - 1), 10: min(EPOCH_MAX, epoch + 1), 11: None}.get(b, epoch)
        is_known = entered_ms is not None and cluster.clock_entered_ms != NO_TIME
        return {"controller_epoch": by_whom, "time_ms": 10**15 if is_known and a == 11 else now}


class RightClocks(Clocks):
    """Clocks of which none is off; what the bus knows of an event is left to the bus."""

    def told(self, cluster: Cluster, kind: str, numbers: tuple[int, int, int], now: int) -> dict[str, Any]:
        return {"time_ms": now} | ({"controller_epoch": cluster.controller_epoch} if kind in ENGINE_KINDS else {})


def forged(fields: dict[str, Any]) -> dict[str, Any]:
    """Make of a claim one that no job made, which would be the last."""
    return fields | {"controller_epoch": EPOCH_MAX, "is_claim": False}


def entries(raws: Iterable[bytes], first: int = 1) -> list[Entry]:
    """Read events as a replay does: what they say of what their bus knew is known."""
    return [entry._replace(seq=seq) for seq, entry in enumerate(entries_of(raws), start=first)]
