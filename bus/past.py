"""What a bus keeps, events and states, and the part of its interface that reads the past and removes it."""

from typing import NamedTuple, Protocol

ALL_EVENTS = 2**62


class Entry(NamedTuple):
    """One published event at its place in the total order.

    In a recorded log ``entered_ms`` and ``is_claim`` may be None, if they are not known. The rules then ignore them.
    """

    seq: int
    raw: bytes
    # The bus's own time when the event came.
    entered_ms: int | None = None
    # Whether the bus knows the event as a job's claim.
    is_claim: bool | None = None
    # The bus's time of the last claim, or telling tick, that found the event undecided; None if none did.
    found_ms: int | None = None


class Page(NamedTuple):
    """One page of a shard's state in the engine's encoding."""

    shard: int
    # CLUSTER_PAGE for the cluster part, otherwise >= 0.
    page: int
    body: bytes


class Image(NamedTuple):
    """The state after all events through ``seq`` were decided."""

    seq: int
    pages: list[Page]


class Snapshot(NamedTuple):
    """An older state that the bus still has."""

    # All events through it are in the state.
    seq: int
    # The bus's time when the snapshot was taken.
    time_ms: int


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

    def seqs_about(self, topic: str, partition: int, before: int, limit: int) -> list[int]:
        """Return up to ``limit`` seqs before ``before`` of events that led to decisions about a partition or its topic.

        They come newest first. Some may have no decision about the partition. High watermarks do not count.
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

    def thin(self, through: int, retain: int = ALL_EVENTS) -> int:
        """Remove what had no lasting effect from a slice of the events up to ``through``, if this bus can do that.

        These are ticks, heartbeats and reports that led to no decision, high watermarks, and snapshots. The newest
        ``retain`` of the remaining events stay. Returns how many events and decisions were checked or removed; 0 if
        none is left.
        """
        ...
