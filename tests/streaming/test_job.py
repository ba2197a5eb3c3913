"""What a job looks at before and while it runs, without Spark: the state's layout, and whether time goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isrflow.bus.embedded import EmbeddedBus
from isrflow.bus.interface import Page
from isrflow.conf.settings import Settings
from isrflow.sinks.metrics import Metrics
from isrflow.state.cluster import Cluster
from isrflow.state.codec import encode_cluster, encode_topics
from isrflow.state.partition import Topic, TopicState
from isrflow.streaming.checkpoint_lock import Holder, checkpoint_lock
from isrflow.streaming.ends import JobError, SupersededError
from isrflow.streaming.job import Job
from isrflow.streaming.ticker import Ticker


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    yield bus
    bus.close()


class Running:
    """A query that goes on."""

    def is_active(self) -> bool:
        return True


def watched(job: Job, ticker: Ticker) -> None:
    decider: Any = Running()
    with checkpoint_lock(job._checkpoint, Holder.of(job._bus, "bus.db")) as lock:
        job._watch(decider, ticker, lock)


def claimed(bus: EmbeddedBus) -> tuple[Job, Ticker]:
    job = Job(bus, Settings(metrics_port=-1, checkpoint_dir=str(bus.path) + ".checkpoint"), Metrics())
    job._claim = bus.claim("job", {}, 1)
    return job, Ticker(bus, 1, 10, 10)


def test_pages_other_than_those_of_the_state_are_refused(bus: EmbeddedBus) -> None:
    topics = encode_topics([Topic(name, "id", TopicState.created, {}, ()) for name in ("a", "b", "c")])
    bus.commit(0, 1, [], [Page(0, -1, encode_cluster(Cluster(shards=1))), Page(0, 0, topics)])
    with pytest.raises(JobError, match=r"pages is 64, .* set pages = 1$"):
        Job(bus, Settings(shards=1, pages=64), Metrics())
    Job(bus, Settings(shards=1, pages=1), Metrics())


def test_a_ticker_that_died_stops_the_job(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    job, ticker = claimed(bus)

    def timed_out() -> int:
        raise TimeoutError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(bus, "claimed_epoch", timed_out)
        ticker.start()
        ticker.join(10)
    with pytest.raises(JobError, match="ticks cannot be published: no answer"):
        watched(job, ticker)


def test_a_ticker_that_ended_for_another_job_does_not_hide_that(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, ticker = claimed(bus)
    ticker.start()
    last_seq = bus.last_seq

    def superseded() -> int:
        bus.claim("other", {}, 2)
        ticker.join(10)
        return last_seq()

    # Right after the job has looked who holds the claim.
    monkeypatch.setattr(bus, "last_seq", superseded)
    with pytest.raises(SupersededError, match="epoch 2"):
        watched(job, ticker)
