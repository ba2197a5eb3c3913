"""The state as of any seq within reach: the nearest older state, and the rules on the events since."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bus.image import read_clusters, read_image
from bus.interface import Bus, Image
from controller_logic.replay import Replay, first_states, logged
from history.log import whole_event_pages
from history.reach import check_reached
from state.cluster import MappedTopics, State
from state.ids import shard_of
from state.partition import Topic
from state.policy import Policy
from state.view import view_of


class StateAt(NamedTuple):
    """The state after all events through ``seq``, one for each shard."""

    seq: int
    states: list[State]

    def topics(self) -> Iterable[Topic]:
        """Yield every topic, in any order."""
        held = (state.topics.get(name) for state in self.states for name in state.topics.names())
        return (topic for topic in held if topic is not None)

    def view(self) -> dict[str, Any]:
        """Describe the state as users see it."""
        return view_of(self.states[0].cluster, self.topics())


def state_at(bus: Bus, seq: int) -> StateAt:
    """Rebuild the state as of ``seq``.

    Raises ``BeyondReachError`` if events that it needs were removed, also while it reads them, or if ``seq`` is not
    decided yet.
    """
    base = _nearest(bus, seq, check_reached(bus, seq).decided)
    replay = Replay(states_of(base), Policy())
    for page in whole_event_pages(bus, base.seq, seq):
        replay.take(list(logged(page)))
    return StateAt(seq, replay.states)


def _nearest(bus: Bus, seq: int, decided: int) -> Image:
    """Return the newest state on the bus that is not newer than ``seq``; the empty one if there is none."""
    if seq >= decided and (newest := bus.image()).seq <= seq:
        return newest
    older = [snapshot.seq for snapshot in bus.snapshots() if snapshot.seq <= seq]
    return bus.snapshot(older[-1]) if older else Image(0, [])


def states_of(image: Image) -> list[State]:
    """Read the state of each shard from an image. Raises ``CodecError``."""
    clusters = read_clusters(image)
    if not clusters:
        return first_states(1)
    held: list[dict[str, Topic]] = [{} for _ in clusters]
    for topic in read_image(image).topics:
        held[shard_of(topic.topic, len(clusters))][topic.topic] = topic
    return [State(cluster, MappedTopics(topics)) for cluster, topics in zip(clusters, held, strict=True)]
