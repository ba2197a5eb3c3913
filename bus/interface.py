"""What every kind of bus does for the engine, brokers and commands."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bus.past import Entry as Entry
from bus.past import Image as Image
from bus.past import Page as Page
from bus.past import Past as Past
from bus.past import Snapshot as Snapshot
from isrflow.column_blocks import DecidedColumns as DecidedColumns
from isrflow.contract import AFTER_ALL_OF as AFTER_ALL_OF
from isrflow.contract import DECISIONS_BYTES_MAX as DECISIONS_BYTES_MAX
from isrflow.contract import MAX_EVENT_BYTES as MAX_EVENT_BYTES
from isrflow.contract import Decided as Decided
from isrflow.errors import BusError as BusError
from isrflow.errors import DamagedError as DamagedError
from isrflow.errors import EngineOnlyError as EngineOnlyError
from isrflow.errors import NoBusError as NoBusError
from isrflow.errors import TrimmedError as TrimmedError

# How many of the newest events ``Bus.newest_tick`` searches.
TICK_SOUGHT_MAX = 1_000


class FencedError(BusError):
    """Another job has claimed a later controller epoch, so this one must stop."""


class OvertakenError(BusError):
    """Another job claimed first, so this claim was not made."""


class DivergedError(BusError):
    """A batch that is repeated after a kill differs from what was written the first time."""


class Claim(NamedTuple):
    """A job's right to decide."""

    controller_epoch: int
    # Of the job's ``controller_started`` event.
    seq: int
    # The bus's time of that event.
    entered_ms: int


class Blocked(NamedTuple):
    """Events on Kafka that cannot be decided yet, because an open transaction begins before them."""

    # Where the transaction begins.
    offset: int
    # How many records come from there on, including markers of transactions.
    records: int


class Bus(Past, Protocol):
    """The log of events, the log of decisions, and the last committed state.

    Every method may raise ``BusError``. Positions are exclusive on the left: ``after`` was already seen.
    """

    # The name of the kind of bus, which is also the name of the module in ``streaming/sources`` that reads it.
    kind: str

    def publish(self, events: Sequence[bytes]) -> int:
        """Append events in order, all or none, and return the last one's seq.

        Raises ``EngineOnlyError`` if one of them is of a kind that only the engine makes.
        """
        ...

    def publish_own(self, events: Sequence[bytes]) -> int:
        """Publish events of any kind on behalf of the engine."""
        ...

    def last_seq(self) -> int:
        """Return the newest event's seq, 0 if there was none yet."""
        ...

    def due_seq(self, after: int) -> int:
        """Return the seq of the newest event that starts a batch by itself, but at least ``after``."""
        ...

    def log_ends_came(self, after: int) -> bool:
        """Return whether a report of log ends was published after ``after``. It may be a moment late to tell."""
        ...

    def read(self, after: int, through: int) -> list[Entry]:
        """Return the events after ``after``, through ``through``, in order.

        Raises ``TrimmedError`` if retention has removed any of them.
        """
        ...

    def claim(
        self, controller_id: str, settings: dict[str, str], time_ms: int, after_epoch: int | None = None
    ) -> Claim:
        """Take the next controller epoch and publish ``controller_started``, in one transaction.

        Raises ``OvertakenError`` if ``after_epoch`` is given and is no longer the newest claimed epoch. Raises
        ``BusError`` if epochs are used up.
        """
        ...

    def tell_undecided(self, controller_epoch: int, tick: bytes) -> int | None:
        """Publish a tick that shows which earlier events, those after its ``decided_seq``, are undecided by its time.

        Return the tick's seq. Return None and publish nothing while that is not possible. Call this only between two
        batches, because a replay would decide a batch in progress differently. Raises ``FencedError`` if a later epoch
        was claimed.
        """
        ...

    def resign(self, controller_epoch: int) -> None:
        """Note that the job with this epoch decides nothing more. A standby then takes over without waiting."""
        ...

    def resigned_epoch(self) -> int:
        """Return the newest epoch whose job has resigned, 0 if none has."""
        ...

    def newest_tick(self) -> int:
        """Return the seq of the newest tick among the newest 1,000 events, 0 if there is none.

        A tick counts even while it cannot be decided (``blocked``), because it shows that an engine lives.
        """
        ...

    def blocked(self) -> Blocked | None:
        """Return the events that an open transaction keeps from being decided now; None if there are none.

        Any transaction that is about to end is seen too, so only one that stays open is a fault.
        """
        ...

    def blocker(self) -> str:
        """Name the open transaction that keeps events from being decided, and what aborts it; empty if none does."""
        ...

    def claimed_epoch(self) -> int:
        """Return the newest claimed controller epoch, 0 if there was none yet."""
        ...

    def bus_id(self) -> int:
        """Return the number drawn at the first claim, which no other bus has; 0 before that claim."""
        ...

    def identities(self, name: str) -> tuple[str, ...]:
        """Return texts that identify this bus; ``name`` is what the settings call it.

        If two processes have one of these texts in common, they have the same bus.
        """
        ...

    def commit(self, controller_epoch: int, through: int, decisions: Sequence[Decided], pages: Sequence[Page]) -> None:
        """Write a batch's decisions and state, once. Writing the same batch again changes nothing.

        ``through`` is the batch's last event. Raises ``FencedError`` if a later epoch was claimed. Raises
        ``DivergedError`` if a decision was written differently before, or if the same batch led to another state. Then
        nothing is written.
        """
        ...

    def decided_seq(self) -> int:
        """Return the last event whose decisions are in the log."""
        ...

    def committed_seq(self) -> int:
        """Return the last event of the last commit, even if its decisions cannot be read yet."""
        ...

    def decisions(
        self, after: tuple[int, int], limit: int, bytes_max: int = DECISIONS_BYTES_MAX, *, passing_over: bool = False
    ) -> list[Decided]:
        """Return up to ``limit`` decisions after (seq, index), in order. An ``after`` with seq 0 never raises.

        They have at most ``bytes_max`` bytes together, but there is at least one. Raises ``TrimmedError`` if retention
        has removed decisions in between, except with ``passing_over``, which skips them.
        """
        ...

    def decided_columns(self, after: tuple[int, int], limit: int) -> list[Decided | DecidedColumns]:
        """Return decisions after (seq, index) as ``decisions`` does, but a block of columns as it is stored.

        The last decision or block may exceed ``limit`` and ``DECISIONS_BYTES_MAX``.
        """
        ...

    def changed(self) -> bool:
        """Return whether anything may have been written since this thread last asked. Cheap enough to ask often."""
        ...

    def image(self) -> Image:
        """Return the state of the last commit as one consistent whole."""
        ...

    def replace_image(self, controller_epoch: int, image: Image) -> None:
        """Replace all pages by the same state in other pages, in one transaction, and count that (``layouts``).

        Raises ``FencedError`` if a later epoch was claimed, and ``DivergedError`` if ``image`` is not at the last
        commit. Then nothing is written.
        """
        ...

    def layouts(self) -> int:
        """Return how many times the image was replaced. A checkpoint from before has the state in other pages."""
        ...

    def await_writable(self) -> None:
        """Wait until no other process has the bus locked. Raises ``BusError`` if that takes too long."""
        ...

    def close(self) -> None: ...
