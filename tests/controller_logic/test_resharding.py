"""A state in other shards is the state that these shards would have reached themselves."""

import pytest

from controller_logic.replay import decide
from controller_logic.resharding import resharded
from state.cluster import State
from state.policy import Policy
from state.stored.codec import encode_cluster, encode_topics
from tests.support.random_logs import seeded


def encoded(states: list[State]) -> list[tuple[bytes, bytes]]:
    """Return each shard's state as it is stored."""
    topics = [[state.topics.get(name) for name in state.topics.names()] for state in states]
    return [
        (encode_cluster(state.cluster), encode_topics([topic for topic in held if topic is not None]))
        for state, held in zip(states, topics, strict=True)
    ]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("before", "after"), [(1, 5), (7, 3)])
def test_a_resharded_state_has_the_bytes_of_one_that_was_always_in_these_shards(
    seed: int, before: int, after: int
) -> None:
    log = seeded(seed=seed, count=250 + 45 * seed)
    states = decide(log, Policy(), shards=before).states
    topics = [topic for state in states for name in state.topics.names() if (topic := state.topics.get(name))]
    moved = resharded([state.cluster for state in states], topics, after)
    assert topics
    assert encoded(moved) == encoded(decide(log, Policy(), shards=after).states)
