"""The page's thread: what it shows after batches, after a start on an old state, and on a standby."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import structlog

from bus.embedded import EmbeddedBus
from bus.interface import Decided, Page
from sinks.web import live
from sinks.web.counted_pages import CountedPages
from sinks.web.inbox import Inbox
from sinks.web.live import Live
from sinks.web.partitions import Summary
from state.broker import Broker, BrokerState
from state.cluster import Cluster
from state.partition import Topic
from state.stored.codec import encode_cluster, encode_slices
from state.stored.slices import Slice, slices_of
from tests.sinks.sample import decision
from tests.sinks.web.test_partitions import partition, topic
from tests.support.waiting import TIMEOUT_S, wait_until

BROKERS = {number: Broker(number, number, "i", BrokerState.active, None, (), (), 0) for number in (1, 2, 3)}


class Scene:
    """A bus, batches on it, and the page's thread, which is moved by hand."""

    def __init__(self, path: Path) -> None:
        self.bus = EmbeddedBus(path)
        self.inbox = Inbox()
        self.is_standby = False
        self.told: Summary | None = None
        self.live = Live(self.bus, self.inbox, lambda: self.is_standby, self.tell, lambda: None)
        self.seq = 0
        self.cluster = Cluster(brokers=BROKERS)

    def tell(self, summary: Summary | None) -> None:
        self.told = summary

    @property
    def told_of(self) -> list[tuple[str, int]]:
        """The partitions at risk that the metrics name."""
        return [(row.topic, row.partition) for row in self.told.rows] if self.told else []

    def batch(self, *topics: Topic, decisions: Sequence[bytes] = (), hidden: bool = False) -> None:
        """Commit a batch. The first topic is on page 0; a slice is a page of its own."""
        self.seq += 1
        self.cluster = msgspec.structs.replace(self.cluster, seq=self.seq)
        slices = [one for each in topics for one in slices_of(each)]
        self.commit(list(enumerate([one] for one in slices)), decisions, hidden)

    def commit(
        self, slices: Sequence[tuple[int, list[Slice]]], decisions: Sequence[bytes] = (), hidden: bool = False
    ) -> None:
        pages = [Page(0, number, encode_slices(held)) for number, held in slices]
        pages.append(Page(0, -1, encode_cluster(self.cluster)))
        made = [Decided(self.seq, index, body) for index, body in enumerate(decisions)]
        self.bus.commit(0, self.seq, made, pages)
        if not hidden:
            self.inbox.committed(self.seq, [self.cluster], pages, made)

    def problems(self) -> dict[str, int]:
        self.live.look()
        return dict(self.live.picture.summary.problems)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "bus.db")
    yield made
    made.bus.close()


def test_a_batch_changes_what_is_shown(scene: Scene) -> None:
    scene.live.look()
    scene.batch(topic(partition(0), partition(1)))
    assert scene.problems() == {}
    assert (scene.live.picture.topics, scene.live.picture.partitions) == (1, 2)
    version = scene.live.version
    scene.batch()
    assert scene.problems() == {}
    assert (scene.live.picture.seq, scene.live.version) == (2, version), "time alone changes nothing that is sent"
    scene.batch(topic(partition(0), partition(1, isr=(1, 2))))
    assert scene.problems() == {"under_replicated": 1}
    assert scene.told_of == [("orders", 1)]
    assert scene.live.version > version


def test_a_job_that_takes_over_shows_the_state_that_it_found(scene: Scene) -> None:
    scene.batch(topic(partition(0, leader=-1, isr=(1,))), hidden=True)
    scene.live.look()
    scene.inbox.begin()
    scene.batch()
    assert scene.problems() == {"offline": 1, "at_min_isr": 1, "under_replicated": 1}
    assert scene.live.picture.brokers == BROKERS


def test_a_deleted_topic_is_shown_no_more(scene: Scene) -> None:
    scene.live.look()
    scene.batch(topic(partition(0, isr=(1, 2))))
    assert scene.problems() == {"under_replicated": 1}
    scene.seq += 1
    scene.commit([(0, [])])
    assert scene.problems() == {}
    assert (scene.live.picture.topics, scene.told_of) == (0, [])


def test_the_clusters_setting_counts_for_pages_that_did_not_change(scene: Scene) -> None:
    scene.live.look()
    scene.batch(topic(partition(0, isr=(1, 2))))
    assert scene.problems() == {"under_replicated": 1}
    scene.cluster = msgspec.structs.replace(scene.cluster, config={"min.insync.replicas": "3"})
    scene.batch()
    assert scene.problems() == {"under_min_isr": 1, "under_replicated": 1}


def test_a_large_topics_setting_counts_for_all_its_slices(scene: Scene) -> None:
    scene.live.look()
    partitions = [partition(number, isr=(1, 2)) for number in range(1_500)]
    scene.batch(topic(*partitions))
    assert scene.problems() == {"under_replicated": 1_500}
    assert scene.live.picture.topics == 1
    first = slices_of(topic(*partitions, min_insync_replicas="3"))[0]
    scene.seq += 1
    scene.commit([(0, [first])])
    assert scene.problems() == {"under_min_isr": 1_500, "under_replicated": 1_500}


def test_decisions_are_counted_and_listed(scene: Scene) -> None:
    scene.live.look()
    scene.batch(decisions=[decision("leader_and_isr", "LEADER_FENCED", topic="t", partition=n) for n in range(5_000)])
    scene.live.look()
    (group,) = scene.live.recent.groups(10)
    assert (group.count, group.first.reason) == (5_000, "LEADER_FENCED")
    assert scene.live.timeline.totals["elections"] == 5_000


def reasons(scene: Scene) -> list[str]:
    scene.live.look()
    return [group.first.reason for group in scene.live.recent.groups(10)]


def test_decisions_from_before_the_start_are_recalled_once(scene: Scene) -> None:
    def made(reason: str) -> tuple[bytes, ...]:
        return (decision("leader_and_isr", reason, topic="t", partition=1, seq=scene.seq + 1),)

    scene.batch(decisions=made("TOPIC_CREATED"), hidden=True)
    scene.batch(decisions=made("LEADER_FENCED"), hidden=True)
    assert reasons(scene) == ["LEADER_FENCED", "TOPIC_CREATED"]
    scene.inbox.committed(2, [scene.cluster], [], [Decided(2, 0, made("LEADER_FENCED")[0])])
    assert len(reasons(scene)) == 2, "it was recalled already"
    # Another job decides one batch, and then this job goes on.
    scene.batch(decisions=made("ISR_SHRUNK"), hidden=True)
    scene.inbox.begin()
    scene.batch(decisions=made("ISR_EXPANDED"))
    assert reasons(scene) == ["ISR_EXPANDED", "ISR_SHRUNK", "LEADER_FENCED", "TOPIC_CREATED"]
    assert sum(sum(bucket[1:]) for bucket in scene.live.timeline.since(0)["1000"]) == 4


def test_a_batch_before_the_first_look_is_told_once(scene: Scene) -> None:
    scene.batch(decisions=(decision("leader_and_isr", "LEADER_FENCED", topic="t", partition=1),))
    assert reasons(scene) == ["LEADER_FENCED"]
    assert sum(sum(bucket[1:]) for bucket in scene.live.timeline.since(0)["1000"]) == 1


def test_a_standby_reads_the_bus_while_somebody_looks(scene: Scene) -> None:
    scene.is_standby = True
    scene.batch(topic(partition(0, isr=(1, 2))), hidden=True)
    assert scene.problems() == {}
    scene.live.watched()
    assert scene.problems() == {"under_replicated": 1}
    scene.is_standby = False
    scene.inbox.begin()
    scene.batch(topic(partition(0)))
    assert scene.problems() == {}


def test_what_a_standby_shows_is_no_metric(scene: Scene) -> None:
    """A standby reads the bus only while somebody looks at the page, so such a metric would go stale."""
    scene.is_standby = True
    scene.batch(topic(partition(0, isr=(1, 2))), hidden=True)
    scene.live.watched()
    assert scene.problems() == {"under_replicated": 1}
    assert scene.told is None
    scene.is_standby = False
    scene.inbox.begin()
    scene.live.look()
    scene.batch()
    scene.live.look()
    assert scene.told_of == [("orders", 0)]


def test_a_state_that_cannot_be_read_does_not_end_the_thread(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "RETRY_S", 0.1)
    monkeypatch.setattr(live, "INTERVAL_S", 0.01)
    scene.batch(topic(partition(0, isr=(1, 2))))
    scene.live.look()
    assert scene.told is not None
    scene.seq += 1
    scene.bus.commit(0, scene.seq, [], [Page(0, 0, b"\x00")])
    scene.inbox.begin()
    scene.batch()
    with structlog.testing.capture_logs() as lines:
        scene.live.start()
        wait_until(lambda: bool(lines), "a log line")
        wait_until(lambda: scene.told is None, "the metrics to say nothing of partitions")
        scene.batch(topic(partition(0, isr=(1, 2))))
        wait_until(lambda: scene.live.picture.seq == scene.seq, "the next batch")
    scene.live.stop()
    scene.live.join(TIMEOUT_S)
    assert {line["event"] for line in lines} == {"the page cannot read the state now; trying again later"}
    assert not scene.live.is_alive()


def test_an_error_that_nobody_foresaw_is_logged_and_does_not_end_the_thread(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(live, "RETRY_S", 0.1)
    monkeypatch.setattr(live, "INTERVAL_S", 0.01)
    with structlog.testing.capture_logs() as lines:
        with monkeypatch.context() as patch:
            patch.setattr(CountedPages, "put", fail)
            scene.batch(topic(partition(0)))
            scene.live.start()
            wait_until(lambda: bool(lines), "a log line")
        scene.batch(topic(partition(0, isr=(1, 2))))
        wait_until(lambda: scene.live.picture.seq == 2, "the next batch")
    scene.live.stop()
    scene.live.join(TIMEOUT_S)
    assert [(line["log_level"], line["error"]) for line in lines][:1] == [("error", "ZeroDivisionError('broken')")]
    assert scene.told_of == [("orders", 0)]


def test_topics_whose_names_begin_with_the_text_are_found_first(scene: Scene) -> None:
    scene.live.look()
    scene.batch(*(topic(partition(0), name=name) for name in ("zebra", "re-orders", "Orders-2", "orders")))
    scene.live.look()
    assert scene.live.topics_like("orders", 2) == (["Orders-2", "orders"], 3)
    assert scene.live.topics_like("none", 2) == ([], 0)
