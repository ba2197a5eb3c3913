"""Clocks that lie: authors' clocks are wrong, the bus's clock is set, and ticks and claims are forged.

Before an engine's claim any wrong time moves time for everyone, so all clocks are right there.
"""

from collections.abc import Iterable
from typing import Any

from bus.claim import EPOCH_MAX
from bus.interface import Entry
from cli.replay import entries_of
from isrflow.contract import ENGINE_KINDS
from state.cluster import Cluster
from state.ids import NO_TIME

HOUR_MS = 3_600_000
# The largest error of the bus's clock.
_SET = (0, 0, HOUR_MS, -HOUR_MS, 40_000, -500)
# The error of an author's clock, by the remainder of its draw.
_AUTHORS = {3: 10_000, 7: HOUR_MS, 11: -HOUR_MS, 17: 10**15}
_REMAINDERS = 29


class Clocks:
    """The clocks of events' authors and of the bus."""

    def __init__(self) -> None:
        self._bus_ahead_ms = 0

    def set_bus(self, place: int) -> None:
        """Set the bus's clock."""
        self._bus_ahead_ms = _SET[place % len(_SET)]

    def fields(self, cluster: Cluster, kind: str, numbers: tuple[int, int, int], now: int) -> dict[str, Any]:
        """Return the fields of an event for its time, its author, and what the bus knows about it."""
        if not cluster.has_engine_clock:
            return {"time_ms": now}
        a, b, c = numbers
        entered_ms = now + self._bus_ahead_ms if c % 5 else None
        known = {"entered_ms": entered_ms}
        if kind == "controller_started":
            return known | ({"time_ms": now} if a % 4 else {"time_ms": now + _SET[b % len(_SET)]})
        if kind in ENGINE_KINDS:
            return known | self._engine_fields(cluster, a, b, now, entered_ms)
        return known | {"time_ms": now + _AUTHORS.get((a + 12 * b + 5 * c) % _REMAINDERS, 0)}

    def _engine_fields(self, cluster: Cluster, a: int, b: int, now: int, entered_ms: int | None) -> dict[str, Any]:
        """Forge some engine events; if the bus knows their entry time, give some a time in microseconds."""
        epoch = cluster.controller_epoch
        by_whom = {9: max(0, epoch - 1), 10: min(EPOCH_MAX, epoch + 1), 11: None}.get(b, epoch)
        is_known = entered_ms is not None and cluster.clock_entered_ms != NO_TIME
        return {"controller_epoch": by_whom, "time_ms": 10**15 if is_known and a == 11 else now}


class RightClocks(Clocks):
    """Clocks that are right. Events do not say what the bus knows about them."""

    def fields(self, cluster: Cluster, kind: str, numbers: tuple[int, int, int], now: int) -> dict[str, Any]:
        return {"time_ms": now} | ({"controller_epoch": cluster.controller_epoch} if kind in ENGINE_KINDS else {})


def forged(fields: dict[str, Any]) -> dict[str, Any]:
    """Turn a claim into a forged one, in the last possible epoch."""
    return fields | {"controller_epoch": EPOCH_MAX, "is_claim": False}


def entries(raws: Iterable[bytes], first: int = 1) -> list[Entry]:
    """Read events as a replay does: their own texts say what the bus knew of them."""
    return [entry._replace(seq=seq) for seq, entry in enumerate(entries_of(raws), start=first)]
