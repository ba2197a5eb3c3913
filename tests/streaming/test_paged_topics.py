"""Topics are stored in pages; only the pages that an event needs are read."""

import gc
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bus.image import read_image
from bus.interface import Image, Page
from bus.pieces import PIECE_BYTES_MAX
from controller_logic.step import step
from controller_logic.topics import PARTITIONS_MAX
from state.cluster import Cluster, State
from state.decisions import Answer
from state.event_text import decode
from state.events import Logged
from state.ids import page_of
from state.partition import ReplicaLag, Topic
from state.policy import Policy
from state.stored.codec import CodecError, encode_slices, joined_topics
from state.stored.packed import Unpacked
from state.stored.slices import SLICE_PARTITIONS, slices_of
from state.stored.stored_partitions import StoredPartitions
from streaming.paged_topics import PagedTopics
from tests.support.engine import encoded

PAGES = 16


class CountedPages(dict[int, bytes]):
    """Pages in memory that count how often one is read."""

    reads = 0

    def get(self, page: int, default: Any = None, /) -> Any:
        self.reads += 1
        return super().get(page, default)


class PagedShard:
    """A shard whose topics are stored in pages, stepped batch by batch."""

    def __init__(self) -> None:
        self.pages = CountedPages()
        self.cluster = Cluster()

    def batch(self, *raws: bytes) -> list[str]:
        """Decide one batch, and return the errors of its answers."""
        first = self.cluster.seq + 1
        logged = [Logged(seq, first, decode(raw), raw) for seq, raw in enumerate(raws, first)]
        outcome = step(State(self.cluster, PagedTopics(lambda: self.pages, 1, PAGES)), logged, Policy())
        assert isinstance(outcome.state.topics, PagedTopics)
        self.pages.update(outcome.state.topics.changed_pages(outcome.changes, outcome.state.cluster.level))
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


def test_a_stored_name_deleted_in_the_batch_no_longer_collides(shard: PagedShard) -> None:
    where = {"topic": "held7.name", "partition": 0, "broker": 1, "broker_epoch": 1, "leader_epoch": -2}
    deleted = [encoded("delete_topic", topic="held7.name"), encoded("replica_report", **where, outcome="deleted")]
    errors = shard.batch(*deleted, created("held7_name"), created("held7.name"))
    assert errors == ["NONE", "NONE", "INVALID_TOPIC_EXCEPTION"]
    assert shard.batch(created("held7.name")) == ["INVALID_TOPIC_EXCEPTION"]


BIG = 2 * SLICE_PARTITIONS + 5


def big(partitions: int = BIG) -> bytes:
    return encoded("create_topic", topic="big", partitions=partitions, replication_factor=1)


def topic_of(shard: PagedShard, name: str) -> Topic:
    """Return a topic as it is stored now."""
    topic = PagedTopics(lambda: shard.pages, 1, PAGES).get(name)
    assert topic is not None
    return replace(topic, partitions=tuple(topic.partitions))


def written(shard: PagedShard, *raws: bytes) -> list[int]:
    """Step a batch, and list the pages that it stored."""
    before = dict(shard.pages)
    shard.batch(*raws)
    return [page for page, body in sorted(shard.pages.items()) if body != before.get(page)]


def reported(partition: int) -> bytes:
    where = {"topic": "big", "partition": partition, "broker": 1}
    return encoded("log_end_offset", **where, leader_epoch=0, log_end_offset=partition + 7)


def test_a_topic_of_many_partitions_is_on_several_pages_and_comes_back_whole(shard: PagedShard) -> None:
    home = page_of("big", 1, PAGES)
    held = [topic.topic for topic in joined_topics([shard.pages[home]])]
    assert written(shard, big()) == [home, home + PAGES, home + 2 * PAGES]
    assert [partition.partition for partition in topic_of(shard, "big").partitions] == list(range(BIG))
    # The other topics are unchanged, and a read of all pages finds this topic once.
    everything = PagedTopics(lambda: shard.pages, 1, PAGES)
    assert set(held) < set(everything.names())
    assert everything.names().count("big") == 1
    image = Image(1, [Page(0, page, body) for page, body in shard.pages.items()])
    assert {topic.topic: topic for topic in read_image(image).topics}["big"] == topic_of(shard, "big")
    assert len(read_image(image).topics) == len(everything.names())


def test_only_the_slices_that_changed_are_stored(shard: PagedShard) -> None:
    home = page_of("big", 1, PAGES)
    shard.batch(big())
    assert written(shard, reported(BIG - 1), encoded("tick")) == [home + 2 * PAGES]
    assert topic_of(shard, "big").partitions[BIG - 1].high_watermark == BIG + 6
    assert written(shard, reported(SLICE_PARTITIONS), encoded("tick")) == [home + PAGES]
    assert written(shard, encoded("alter_config", entity="topic", name="big", config={"a": "b"})) == [home]
    total = 3 * SLICE_PARTITIONS + 1
    assert written(shard, encoded("create_partitions", topic="big", total=total)) == [
        home,
        home + 2 * PAGES,
        home + 3 * PAGES,
    ]
    assert len(topic_of(shard, "big").partitions) == total


def test_a_change_of_one_partition_loads_only_its_slice(shard: PagedShard) -> None:
    home = page_of("big", 1, PAGES)
    shard.batch(big())
    shard.pages.reads = 0
    assert written(shard, reported(BIG - 1), encoded("tick")) == [home + 2 * PAGES]
    # The first slice, and the one with the partition.
    assert shard.pages.reads == 2


def test_a_lost_broker_asks_only_for_the_partitions_on_it(shard: PagedShard, monkeypatch: pytest.MonkeyPatch) -> None:
    shard.batch(
        encoded("broker_register", broker=2, incarnation="i"),
        encoded("create_topic", topic="mixed", assignment={str(n): [2 if n % 10 == 0 else 1] for n in range(100)}),
    )
    asked: list[int] = []
    some = Unpacked.some
    monkeypatch.setattr(Unpacked, "some", lambda self, places: asked.append(len(places)) or some(self, places))
    monkeypatch.setattr(Unpacked, "all", lambda self: pytest.fail("all partitions were read"))
    fence = encoded("broker_heartbeat", broker=1, broker_epoch=1, want_fence=True, want_shutdown=False, request_id="r")
    assert shard.batch(fence) == ["NONE"]
    monkeypatch.undo()
    # The other fifty topics have one partition each.
    assert sum(asked) == 90 + 50
    assert [one.leader for one in topic_of(shard, "mixed").partitions[9:11]] == [-1, -1]


def test_a_topic_recreated_smaller_has_no_old_slices(shard: PagedShard) -> None:
    shard.batch(big())
    gone = [
        encoded(
            "replica_report", topic="big", partition=n, broker=1, broker_epoch=1, leader_epoch=-2, outcome="deleted"
        )
        for n in range(BIG)
    ]
    shard.batch(encoded("delete_topic", topic="big"), *gone)
    assert PagedTopics(lambda: shard.pages, 1, PAGES).get("big") is None
    shard.batch(big(3))
    assert len(topic_of(shard, "big").partitions) == 3
    shard.batch(encoded("create_partitions", topic="big", total=BIG))
    assert [partition.partition for partition in topic_of(shard, "big").partitions] == list(range(BIG))


def test_no_page_of_the_largest_topic_is_too_large_for_a_bus(shard: PagedShard) -> None:
    shard.batch(encoded("create_topic", topic="big", partitions=PARTITIONS_MAX, replication_factor=1))
    assert max(len(body) for body in shard.pages.values()) < PIECE_BYTES_MAX
    # Ten replicas, each with every field that a partition may keep for it.
    partition = topic_of(shard, "big").partitions[0]
    lag = ReplicaLag(2**53, 2**53, 2**62)
    ten = tuple(range(2**31 - 10, 2**31))
    full = replace(
        partition,
        replicas=ten,
        replica_states=partition.replica_states * 10,
        isr=ten,
        adding_replicas=ten,
        log_end_offsets=(2**62,) * 10,
        offset_epochs=(2**30,) * 10,
        completed_epochs=(2**30,) * 10,
        requested_epochs=(2**30,) * 10,
        received_epochs=(2**30,) * 10,
        lags=(lag,) * 10,
    )
    topic = replace(topic_of(shard, "big"), partitions=tuple(replace(full, partition=n) for n in range(PARTITIONS_MAX)))
    # Packed, but not compressed, because other values compress less.
    assert max(len(msgspec.msgpack.encode(one)) for one in slices_of(topic)) < PIECE_BYTES_MAX
    assert joined_topics([encode_slices(slices_of(topic)[::-1])]) == [topic]


def test_a_missing_slice_is_an_error(shard: PagedShard) -> None:
    shard.batch(big())
    del shard.pages[page_of("big", 1, PAGES) + PAGES]
    with pytest.raises(CodecError, match=f"topic big has {BIG} partitions, and its slices do not make up .* 1005 part"):
        joined_topics(shard.pages.values())


def test_a_batch_frees_what_it_has_read_without_the_garbage_collector() -> None:
    shard = PagedShard()
    brokers = [encoded("broker_register", broker=broker, incarnation=f"i{broker}") for broker in (1, 2)]
    beats = [
        encoded("broker_heartbeat", broker=broker, broker_epoch=broker, want_fence=False, want_shutdown=False)
        for broker in (1, 2)
    ]
    topics = [encoded("create_topic", topic=f"t{n}", partitions=40, replication_factor=2) for n in range(5)]
    assert set(shard.batch(*brokers, *beats, *topics)) == {"NONE"}
    gc.collect()
    gc.disable()
    try:
        shard.batch(encoded("broker_heartbeat", broker=1, broker_epoch=1, want_fence=True, want_shutdown=False))
        assert shard.pages.reads
        assert [one for one in gc.get_objects() if isinstance(one, StoredPartitions)] == []
    finally:
        gc.enable()
