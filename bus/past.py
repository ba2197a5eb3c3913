"""The part of the bus's interface that reads the past, and removes it: old events and older states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bus.interface import Entry, Image, Seqs, Snapshot


class Past(Protocol):
    """The part of ``bus.interface.Bus`` that reads the past and removes it. Every method may raise ``BusError``."""

    def recorded(self, after: int, through: int, limit: int, bytes_max: int) -> list[Entry]:
        """Return the first events after ``after``, through ``through``, as they were decided: up to ``limit`` of them.

        They have at most ``bytes_max`` bytes together, but there is at least one. Removed events are skipped. With a
        ``limit`` of 1, ``found_ms`` may be missing: a single event is read to show it, and not to decide it again.
        """
        ...

    def claim_seq(self) -> int:
        """Return the seq of the newest claim's event, 0 if there was no claim yet."""
        ...

    def kept_after(self) -> int:
        """Return the seq after which all events are still there; 0 if none was removed."""
        ...

    def seq_at(self, time_ms: int) -> int:
        """Return the seq of the last event that came by ``time_ms`` on the bus's clock; 0 if no remaining event did."""
        ...

    def seqs_about(self, topic: str, partition: int, before: int, limit: int) -> Seqs:
        """Return up to ``limit`` seqs before ``before`` of events that led to decisions about a partition or its topic.

        High watermarks do not count. The search uses an index, not a scan.
        """
        ...

    def snapshots(self) -> list[Snapshot]:
        """Return the older states that the bus still has, oldest first."""
        ...

    def snapshot(self, seq: int) -> Image:
        """Return the state of the snapshot at ``seq``. Raises ``TrimmedError`` if it was removed."""
        ...

    def keep_snapshot(self, controller_epoch: int) -> bool:
        """Keep the state of the last commit as a snapshot. Return False if there is one already.

        Raises ``FencedError`` if a later epoch was claimed.
        """
        ...

    def forget(self, through: int) -> int:
        """Remove a slice of the events up to ``through`` that the checkpoint has passed, and of their decisions.

        A slice is small, so writers wait only briefly. Returns how much was removed; 0 if nothing is left to remove.
        """
        ...

    def thin(self, through: int) -> int:
        """Remove what had no lasting effect from a slice of the events up to ``through``, if this bus can do that.

        These are ticks, heartbeats and reports that led to no decision, high watermarks, and snapshots. Returns how
        many events and decisions were checked; 0 if none is left.
        """
        ...

    def surplus_end(self, retain: int) -> int:
        """Return the seq up to which to ``forget`` events, so that ``retain`` of the thinned ones stay."""
        ...
