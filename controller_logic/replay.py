"""Run a recorded event log through the rules alone."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle, islice
from typing import Any, NamedTuple

from controller_logic.guard import guarded_step
from controller_logic.routing import batch_for
from state.canonical import number
from state.cluster import Cluster, MappedTopics, State
from state.event_text import decode
from state.events import ControllerStarted, Event, Logged
from state.found import found_in, found_ms
from state.policy import Policy
from state.view import view_of

# An event's seq and text. If known: when it entered its bus, whether the bus knew it as a claim, and when a job that
# took over found it undecided.
Recorded = (
    tuple[int, bytes]
    | tuple[int, bytes, int | None, bool | None]
    | tuple[int, bytes, int | None, bool | None, int | None]
)

BATCH_EVENTS = 10_000


class Decided(NamedTuple):
    """The result of an event log."""

    # (seq, index, JSON text) of each decision.
    decisions: list[tuple[int, int, bytes]]
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
) -> Decided:
    """Decide a whole log, in rising ``seq``.

    Batches have the ``batch_sizes`` in turn, over and over. Neither these nor ``shards`` change the decisions.
    """
    states = first_states(shards)
    decisions: list[tuple[int, int, bytes]] = []
    for batch in _batches(logged(_with_found(entries)), batch_sizes):
        parts = []
        for shard, state in enumerate(states):
            outcome = guarded_step(state, batch_for(shard, shards, batch), policy, overrides=overrides or {})
            states[shard] = outcome.state
            parts += outcome.parts
        decisions += number(parts)
    return Decided(decisions, states)


def _with_found(entries: Iterable[Recorded]) -> Iterator[Recorded]:
    """Add to each event the time at which a later claim found it undecided, if one did."""
    whole = [(entry[0], entry[1], *(*entry[2:], None, None)[:2]) for entry in entries]
    found = found_in(whole)
    for seq, raw, entered_ms, is_claim in whole:
        yield seq, raw, entered_ms, is_claim, found_ms(seq, found)


def logged(entries: Iterable[Recorded]) -> Iterator[Logged]:
    """Decode an event log and give each event the clock of version 1 of the rules.

    That clock is the greatest ``time_ms`` so far. It starts again after each claim, which all shards take in, so events
    under version 2 do not move it.
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
