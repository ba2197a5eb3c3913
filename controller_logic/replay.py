"""Run a recorded event log through the rules alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import cycle, islice
from typing import Any, NamedTuple

from controller_logic.batch import Remembered
from controller_logic.guard import guarded_step
from controller_logic.routing import batch_for
from state.canonical import number
from state.cluster import Cluster, MappedTopics, State
from state.event_text import decode
from state.events import ControllerStarted, Event, Logged
from state.found import found_in, found_ms
from state.policy import Policy
from state.view import view_of

# An event's seq and text, and if known: when it entered its bus, whether the bus knew it as a claim, and when a job
# that took over found it undecided.
Recorded = (
    tuple[int, bytes]
    | tuple[int, bytes, int | None, bool | None]
    | tuple[int, bytes, int | None, bool | None, int | None]
)

# (seq, index, JSON text) of a decision.
DecisionText = tuple[int, int, bytes]

BATCH_EVENTS = 10_000


class DecidedLog(NamedTuple):
    """The result of an event log."""

    decisions: list[DecisionText]
    # One for each shard.
    states: list[State]

    def view(self) -> dict[str, Any]:
        """Describe the state at the end, as seen from outside."""
        topics = [state.topics.get(name) for state in self.states for name in state.topics.names()]
        return view_of(self.states[0].cluster, [topic for topic in topics if topic is not None])


def first_states(shards: int) -> list[State]:
    """Return the empty states of a cluster in ``shards`` shards."""
    return [State(Cluster(shard=shard, shards=shards), MappedTopics()) for shard in range(shards)]


def decide(
    entries: Iterable[Recorded],
    policy: Policy,
    *,
    overrides: Mapping[str, str] | None = None,
    shards: int = 1,
    batch_sizes: Iterable[int] = (BATCH_EVENTS,),
    states: list[State] | None = None,
    on_batch: Callable[[int], None] = lambda events: None,
) -> DecidedLog:
    """Decide a whole log, in rising ``seq``.

    Batches take their sizes from ``batch_sizes`` in turn, over and over. Neither sizes nor ``shards`` affect decisions.
    ``on_batch`` is called after each batch, with its number of events.
    """
    replay = Replay(first_states(shards) if states is None else states, policy, overrides)
    decisions: list[DecisionText] = []
    for batch in _batches(logged(_with_found(entries)), batch_sizes):
        decisions += replay.take(batch)
        on_batch(len(batch))
    return DecidedLog(decisions, replay.states)


class Replay:
    """The rules at work on an event log, from given states on. There is one state for each shard."""

    def __init__(self, states: list[State], policy: Policy, overrides: Mapping[str, str] | None = None) -> None:
        self.states = states
        self._policy = policy
        self._overrides = overrides or {}
        self._remembered = Remembered()

    def take(self, batch: list[Logged]) -> list[DecisionText]:
        """Decide the next events, and return the decisions in order."""
        parts = []
        for shard, state in enumerate(self.states):
            events = batch_for(shard, len(self.states), batch)
            outcome = guarded_step(state, events, self._policy, overrides=self._overrides, remembered=self._remembered)
            self.states[shard] = outcome.state
            parts += outcome.parts
        return number(parts)


def _with_found(entries: Iterable[Recorded]) -> Iterator[Recorded]:
    """Add to each event the time at which a later claim found it undecided, if one did."""
    whole = [(entry[0], entry[1], *(*entry[2:], None, None, None)[:3]) for entry in entries]
    found = found_in(entry[:4] for entry in whole)
    for seq, raw, entered_ms, is_claim, known_ms in whole:
        # The claim may come after the end of this log, so the time that the log itself gives counts too.
        found_then_ms = found_ms(seq, found)
        known = [ms for ms in (found_then_ms, known_ms) if ms is not None]
        yield seq, raw, entered_ms, is_claim, max(known, default=None)


def logged(entries: Iterable[Recorded]) -> Iterator[Logged]:
    """Decode an event log and give each event the greatest ``time_ms`` since the last claim.

    That is the clock where no engine has claimed.
    """
    clock_ms = 0
    for entry in entries:
        seq, raw = entry[0], entry[1]
        entered_ms, is_claim, found = (*entry[2:], None, None, None)[:3]
        event = decode(raw)
        if isinstance(event, Event):
            clock_ms = max(clock_ms, event.time_ms)
        yield Logged(seq, clock_ms, event, raw, entered_ms, is_claim, found)
        if isinstance(event, ControllerStarted):
            clock_ms = 0


def _batches(events: Iterator[Logged], sizes: Iterable[int]) -> Iterator[list[Logged]]:
    for size in cycle(sizes):
        batch = list(islice(events, size))
        if not batch:
            return
        yield batch
