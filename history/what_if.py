"""Decisions under other settings or events: the same log, decided twice by the same rules.

The second time, settings are overridden, events are left out, or events are added. All other events stay as they were,
so a broker may answer a decision that was not made this time. A fence refuses such an answer, and the refusals are
counted.

An added event shares the seq of the recorded event that it follows, or has one between those of recorded events.
Recorded events keep their seqs, because a broker's epoch is the seq of its registration, and its later events name that
epoch.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from bus.interface import Entry
from controller_logic.balance import event_of
from controller_logic.replay import DecisionText, Replay, logged
from history.tally import Tally, TallySummary
from state.cluster import State
from state.decisions import Imbalance
from state.decisions import decode as decode_decision
from state.event_text import decode
from state.events import LeaderImbalance, Logged
from state.policy import Policy

BATCH_EVENTS = 2_000
_TOGETHER_MIN = 16
_IMBALANCE = b'{"kind":"imbalance"'
_UNCLEAN = b'"unclean":true'

# Each call gives the recorded events from the beginning.
Events = Callable[[], Iterable[Entry]]


class Changes(NamedTuple):
    """The changes to a recorded log."""

    # Kafka's names, with values as text.
    settings: Mapping[str, str] = {}
    # Seqs of events that are left out.
    without: Collection[int] = ()
    # Added events by seq: they follow the recorded event of that seq, or have the seq themselves if there is none.
    added: Mapping[int, Sequence[bytes]] = {}

    @property
    def is_nothing(self) -> bool:
        return not (self.settings or self.without or self.added)


def as_it_was(states: list[State], events: Events) -> TallySummary:
    """Decide recorded events as before, beginning with ``states``."""
    way = _Way(states, {})
    for entry in logged(events()):
        way.take(entry)
    return way.end()


def as_it_would_be(states: list[State], events: Events, changes: Changes) -> TallySummary:
    """Decide recorded events with ``changes``, beginning with ``states``."""
    if changes.is_nothing:
        return as_it_was(states, events)
    way = _Way(states, changes.settings, _Balance(events()))
    if changes.settings:
        # Settings change by an event, because the rules look at all partitions when an admin changes them.
        event = {"kind": "alter_config", "time_ms": 0, "entity": "cluster", "config": dict(changes.settings)}
        way.add_after(states[0].cluster.seq, [msgspec.json.encode(event)])
    # On Kafka seqs are far apart, so an added event may name one that no recorded event has.
    added = deque(sorted(changes.added.items()))
    for entry in logged(events()):
        while added and added[0][0] < entry.seq:
            way.add_after(*added.popleft())
        if entry.seq not in changes.without:
            way.take(entry)
    for seq, raws in added:
        way.add_after(seq, raws)
    return way.end()


class _Balance:
    """The counts of balance checks. After changes the counts differ too, so the recorded ones cannot be used."""

    def __init__(self, events: Iterable[Entry]) -> None:
        # The seqs of the checks whose counts a recorded event brings back.
        self.recorded = set[int]()
        for entry in events:
            if b"leader_imbalance" in entry.raw and isinstance(event := decode(entry.raw), LeaderImbalance):
                self.recorded.add(event.checked_seq)
        self.counted: dict[int, LeaderImbalance] = {}

    def note(self, decisions: Iterable[DecisionText]) -> list[LeaderImbalance]:
        """Keep the counts among ``decisions``, and return those that no recorded event brings back."""
        missing = []
        for seq, _, body in decisions:
            if body.startswith(_IMBALANCE) and isinstance(decision := decode_decision(body), Imbalance):
                self.counted[seq] = event_of(decision)
                if seq not in self.recorded:
                    missing.append(self.counted[seq])
        return missing


class _Way:
    """One pass of the rules through the events, with its counts."""

    def __init__(self, states: list[State], settings: Mapping[str, str], balance: _Balance | None = None) -> None:
        self._replay = Replay(list(states), Policy(), settings)
        self._tally = Tally(states)
        self._balance = balance
        self._waiting: list[Logged] = []
        # How many events are decided together.
        self._together = BATCH_EVENTS

    def take(self, entry: Logged) -> None:
        """Take in the next recorded event. It is decided together with some that follow."""
        if self._balance is not None and isinstance(entry.event, LeaderImbalance):
            self.flush()
            counted = self._balance.counted.get(entry.event.checked_seq)
            if counted is None:
                return
            entry = replace(entry, event=replace(counted, controller_epoch=entry.event.controller_epoch))
        self._waiting.append(entry)
        if len(self._waiting) >= BATCH_EVENTS:
            self.flush()

    def add_after(self, seq: int, raws: Iterable[bytes]) -> None:
        """Decide added events one by one, as if they had come right after ``seq``."""
        self.flush()
        for raw in raws:
            self._add(seq, raw)

    def _add(self, seq: int, raw: bytes) -> None:
        states = self._replay.states
        states[:] = [State(replace(state.cluster, seq=seq - 1), state.topics) for state in states]
        clock_ms = states[0].cluster.clock_ms
        self._decide([replace(one, clock_ms=clock_ms) for one in logged([(seq, raw)])])

    def flush(self) -> None:
        """Decide what waits."""
        batch, self._waiting = self._waiting, []
        while batch:
            some = batch[: self._together]
            done = self._decide(some)
            # If cuts come close together, most of a long batch would be decided twice.
            self._together = _TOGETHER_MIN if done < len(some) else min(2 * self._together, BATCH_EVENTS)
            batch = batch[done:]

    def _decide(self, batch: list[Logged]) -> int:
        """Decide a batch, or as much of it as can be decided at once. Return how many events that was."""
        before = list(self._replay.states)
        decisions = self._replay.take(batch)
        end = self._first_end(batch, decisions)
        if end < len(batch):
            # The state at this place of the batch matters, so the batch ends here.
            self._replay.states[:] = before
            batch = batch[:end]
            decisions = self._replay.take(batch)
        self._tally.take(decisions, before)
        for event in self._balance.note(decisions) if self._balance is not None else ():
            self._add(event.checked_seq, msgspec.json.encode(event))
        return len(batch)

    def _first_end(self, batch: list[Logged], decisions: Iterable[DecisionText]) -> int:
        """Return where to cut a batch: right before an unclean election and after it, and after a balance check."""
        for seq, _, body in decisions:
            place = next((nth for nth, entry in enumerate(batch) if entry.seq >= seq), len(batch))
            if _UNCLEAN in body and body.startswith(b'{"kind":"leader_and_isr"'):
                return place or 1
            if self._balance is not None and body.startswith(_IMBALANCE):
                return place + 1
        return len(batch)

    def end(self) -> TallySummary:
        """Decide what waits, and return the counts."""
        self.flush()
        return self._tally.end(self._replay.states)
