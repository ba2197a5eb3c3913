"""Topics in pages: only those that an event needs are read."""

from collections.abc import Iterable

import pytest

from isrflow.controller_logic.step import step
from isrflow.state.cluster import Cluster, State
from isrflow.state.decisions import Answer
from isrflow.state.event_text import decode
from isrflow.state.events import Logged
from isrflow.state.policy import Policy
from isrflow.streaming.paged_topics import PagedTopics
from tests.support.engine import encoded

PAGES = 16


class CountedPages(dict[int, bytes]):
    """Keep pages in memory, and count how often one is read."""

    reads = 0

    def load(self, page: int) -> bytes | None:
        self.reads += 1
        return self.get(page)

    def load_all(self) -> Iterable[tuple[int, bytes]]:
        self.reads += len(self)
        return list(self.items())


class PagedShard:
    """Step a shard whose topics are stored in pages, a batch at a time."""

    def __init__(self) -> None:
        self.pages = CountedPages()
        self.cluster = Cluster()

    def batch(self, *raws: bytes) -> list[str]:
        """Give the errors of the answers."""
        first = self.cluster.seq + 1
        logged = [Logged(seq, first, decode(raw), raw) for seq, raw in enumerate(raws, first)]
        outcome = step(State(self.cluster, PagedTopics(self.pages, 1, PAGES)), logged, Policy())
        assert isinstance(outcome.state.topics, PagedTopics)
        self.pages.update(outcome.state.topics.changed_pages(outcome.changes))
        self.cluster = outcome.state.cluster
        return [decision.error for decision in outcome.decisions if isinstance(decision, Answer)]


def created(topic: str) -> bytes:
    return encoded("create_topic", topic=topic, assignment={"0": [1]})


@pytest.fixture
def shard() -> PagedShard:
    shard = PagedShard()
    beat = encoded("broker_heartbeat", broker=1, broker_epoch=1, want_fence=False, want_shutdown=False)
    shard.batch(encoded("broker_register", broker=1, incarnation="i"), beat)
    shard.batch(*[created(f"held{number}.name") for number in range(50)])
    shard.pages.reads = 0
    return shard


def test_a_name_that_could_collide_is_looked_up_in_one_page(shard: PagedShard) -> None:
    assert len(shard.pages) == PAGES
    assert shard.batch(created("another_name")) == ["NONE"]
    assert shard.pages.reads == 1


def test_a_stored_name_collides(shard: PagedShard) -> None:
    assert shard.batch(created("held7_name"), created("held7.name")) == [
        "INVALID_TOPIC_EXCEPTION",
        "TOPIC_ALREADY_EXISTS",
    ]


def test_a_stored_name_that_is_deleted_in_the_batch_collides_no_more(shard: PagedShard) -> None:
    where = {"topic": "held7.name", "partition": 0, "broker": 1, "broker_epoch": 1, "leader_epoch": -2}
    deleted = [encoded("delete_topic", topic="held7.name"), encoded("replica_report", **where, outcome="deleted")]
    errors = shard.batch(*deleted, created("held7_name"), created("held7.name"))
    assert errors == ["NONE", "NONE", "INVALID_TOPIC_EXCEPTION"]
    assert shard.batch(created("held7.name")) == ["INVALID_TOPIC_EXCEPTION"]
