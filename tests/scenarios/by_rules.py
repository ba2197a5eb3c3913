"""Play a story through the rules, with one step for each event."""

from collections.abc import Sequence
from typing import Any

from bus.interface import Decided
from controller_logic.replay import first_states, logged
from controller_logic.step import step
from state.canonical import number
from state.part import part_of
from state.policy import Policy
from state.view import view_of


class ByRules:
    """A player with the state of one shard that has all topics."""

    def __init__(self) -> None:
        self._state = first_states(1)[0]

    def play(self, events: Sequence[tuple[int, bytes]]) -> Sequence[Decided]:
        decided: list[Decided] = []
        for event in logged(events):
            outcome = step(self._state, [event], Policy())
            self._state = outcome.state
            decided += [Decided(*numbered) for numbered in number(map(part_of, outcome.decisions))]
        return decided

    def view(self) -> dict[str, Any]:
        topics = [self._state.topics.get(name) for name in self._state.topics.names()]
        return view_of(self._state.cluster, [topic for topic in topics if topic is not None])
