"""A real bus on which the rules decide events at once, so that a test knows every seq beforehand."""

from collections.abc import Sequence
from pathlib import Path

from bus.decided_runs import DecidedRuns
from bus.embedded import EmbeddedBus
from bus.interface import Page
from controller_logic.replay import first_states, logged
from controller_logic.step import step
from state.canonical import numbered_runs
from state.policy import Policy
from state.runs import parts_of
from state.stored.codec import encode_cluster, encode_topics
from tests.support.lying_clocks import entries
from tests.support.trimming import trim

# There is no claim, because a claim is an event and would come before those of the test.
NO_CLAIM = 0


class DecidedBus:
    """A bus that decides what is published on it; the first event's seq is 1."""

    def __init__(self, path: Path, policy: Policy | None = None) -> None:
        self.bus = EmbeddedBus(path)
        self.state = first_states(1)[0]
        self._policy = policy or Policy()

    def take(self, raws: Sequence[bytes]) -> int:
        """Publish ``raws``, decide and commit them as one batch, and return the last one's seq."""
        after = self.bus.last_seq()
        last = self.bus.publish_own(raws)
        # As in a replay: the text itself says when it entered, and whether it is a claim.
        outcome = step(self.state, list(logged(entries(raws, after + 1))), self._policy)
        self.state = outcome.state
        decisions = DecidedRuns(numbered_runs(parts_of(outcome.said, self.state.cluster.level)))
        held = [topic for name in self.state.topics.names() if (topic := self.state.topics.get(name)) is not None]
        pages = [Page(0, -1, encode_cluster(self.state.cluster)), Page(0, 0, encode_topics(held))]
        self.bus.commit(NO_CLAIM, last, decisions, pages)
        return last

    def trim(self, retain: int) -> None:
        """Remove all events but the newest ``retain``, and their decisions."""
        self.bus.passed(self.bus.last_seq())
        trim(self.bus, retain)

    def close(self) -> None:
        self.bus.close()
