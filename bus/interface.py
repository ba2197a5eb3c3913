"""What the engine, the brokers and the commands ask of a bus, whatever carries it."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple, Protocol

MAX_EVENT_BYTES = 8 * 1024 * 1024
EPOCH_MAX = 2**31 - 1


class BusError(Exception):
    """The bus cannot be reached or read; the message says which and what to do."""


class NoBusError(BusError):
    """There is no bus where one was named, and none was to be made."""


class FencedError(BusError):
    """Another job has claimed a later controller epoch: this one must stop."""


class EngineOnlyError(BusError):
    """Somebody else published what only the engine makes."""


class DivergedError(BusError):
    """A batch that comes again after a kill says something else than what it said before."""


class TrimmedError(BusError):
    """Entries that were asked for were removed by retention."""


class DamagedError(BusError):
    """What a bus holds is not what was written: nothing may be decided on it."""


class Entry(NamedTuple):
    """Hold one event as published, in its place in the total order.

    ``entered_ms`` is the bus's own time when it came, and ``is_claim`` says whether the bus knows it as a job's claim.
    In a recorded log both may be None, not known: then they are not judged by. ``found_ms`` is the bus's time when a
    job that claimed last found it undecided, None where none did.
    """

    seq: int
    raw: bytes
    entered_ms: int | None = None
    is_claim: bool | None = None
    found_ms: int | None = None


class Decided(NamedTuple):
    """Hold one decision as written: its identity and its JSON text."""

    seq: int
    idx: int
    body: bytes


class Claim(NamedTuple):
    """Hold a job's right to decide: its epoch, the seq of its ``controller_started``, and when the bus got that."""

    controller_epoch: int
    seq: int
    entered_ms: int


class Page(NamedTuple):
    """Hold one page of a shard's state as the engine's codec wrote it; page -1 is the cluster part."""

    shard: int
    page: int
    body: bytes


class Image(NamedTuple):
    """Hold the state as it stood when all events through ``seq`` were decided."""

    seq: int
    pages: list[Page]


class OpenOptions(NamedTuple):
    """How a bus is opened (``open_bus``)."""

    create: bool
    read_only: bool
    lock_timeout_s: float
    replication_factor: int


def epoch_after(claimed: int, bus: object) -> int:
    """Return the controller epoch after ``claimed``; raises ``BusError`` where Kafka's 32 bits hold no more."""
    if claimed >= EPOCH_MAX:
        raise BusError(f"bus {bus}: controller epoch {claimed} is the last that there can be: begin a new bus")
    return claimed + 1


def draw_bus_id() -> int:
    """Draw what a bus is known by."""
    return secrets.randbelow(2**62) + 1


class Bus(Protocol):
    """Carry events to the engine and decisions to whoever follows them.

    ``kind`` names the kind of bus; the module that reads it in ``streaming/sources`` has the same name. ``seq_step`` is
    the distance between the seqs of two events that were published one after the other. Every method may raise
    ``BusError``. Positions are exclusive on the left: ``after`` was seen.
    """

    kind: str
    seq_step: int

    def publish(self, events: Sequence[bytes]) -> int:
        """Append events in order, all or none, and return the last one's seq.

        Raises ``EngineOnlyError`` where one is of a kind that only the engine makes.
        """
        ...

    def publish_own(self, events: Sequence[bytes]) -> int:
        """Publish on behalf of the engine, whatever the kind."""
        ...

    def count_sequenced(self, events: Sequence[bytes]) -> int:
        """Return how many of ``events`` get their seq when they are published, and not only when they are decided."""
        ...

    def last_seq(self) -> int:
        """Return the newest event's seq, 0 when there was none yet."""
        ...

    def offsets_position(self) -> int:
        """Return a position behind every ``log_end_offset`` event so far, for ``offsets_came`` alone."""
        ...

    def offsets_came(self, after: int) -> bool:
        """Say whether a ``log_end_offset`` event was published behind the position ``after``."""
        ...

    def read(self, after: int, through: int) -> list[Entry]:
        """Return the events after ``after``, up to and with ``through``, in order.

        Raises ``TrimmedError`` when retention has removed any of them.
        """
        ...

    def claim(self, controller_id: str, settings: dict[str, str], time_ms: int) -> Claim:
        """Take the next controller epoch and publish ``controller_started``, in one transaction.

        Raises ``BusError`` when epochs are used up.
        """
        ...

    def claimed_epoch(self) -> int:
        """Return the newest controller epoch that any job claimed, 0 when none did."""
        ...

    def bus_id(self) -> int:
        """Return the number that was drawn when the bus was claimed first, 0 before: no other bus has it."""
        ...

    def marks(self, name: str) -> tuple[str, ...]:
        """Return what this bus is known by; ``name`` is what the settings call it.

        Two processes that have a mark in common have the same bus.
        """
        ...

    def commit(self, controller_epoch: int, through: int, decisions: Sequence[Decided], pages: Sequence[Page]) -> None:
        """Write a batch's decisions and state, once: a second time with the same is no change.

        ``through`` is the last event that the batch took in. Raises ``FencedError`` when a later
        epoch was claimed, ``DivergedError`` when any of the decisions was written otherwise, or the same batch led to
        another state; then nothing is written.
        """
        ...

    def decided_seq(self) -> int:
        """Return the last event whose decisions are in the log."""
        ...

    def decisions(self, after: tuple[int, int], limit: int) -> list[Decided]:
        """Return up to ``limit`` decisions after (seq, index), in order; after seq 0 are all that there still are.

        Raises ``TrimmedError`` when retention has removed decisions in between.
        """
        ...

    def changed(self) -> bool:
        """Say whether anything may have been written since this thread asked last; cheap enough to ask often."""
        ...

    def image(self) -> Image:
        """Return the state of the last commit, as one consistent whole."""
        ...

    def passed(self, through: int) -> None:
        """Note that the checkpoint will never ask again for events up to ``through``."""
        ...

    def trim(self, retain: int) -> int:
        """Remove a slice of the events that the checkpoint has passed, and of their decisions.

        The newest ``retain`` events stay. A slice is small, so that writers need not wait. Returns how many events
        and decisions went, 0 when no more need to.
        """
        ...

    def close(self) -> None: ...
