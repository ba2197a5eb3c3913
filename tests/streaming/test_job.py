"""A job's checks before and during its run, without Spark: the state's layout, and whether time passes."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import BusError, Claim, Page
from conf.layers import SettingsError
from conf.settings import Settings
from sinks.metrics import Metrics
from state.cluster import Cluster
from state.partition import Topic, TopicState
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import encode_cluster, encode_topics
from streaming.checkpoint_lock import Holder, checkpoint_lock
from streaming.deadlines import LateError
from streaming.engine_clock import EngineClock
from streaming.job import Job
from streaming.job_errors import JobError, SupersededError
from streaming.retention import Passes, Retention
from streaming.run import run
from streaming.tenure import Tenure
from streaming.ticker import Ticker
from streaming.watch import check_parts
from tests.support.waiting import TIMEOUT_S
from web.server import MetricsError


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    yield bus
    bus.close()


def test_pages_other_than_those_of_the_state_are_refused(bus: EmbeddedBus) -> None:
    topics = encode_topics([Topic(name, "id", TopicState.created, {}, ()) for name in ("a", "b", "c")])
    bus.commit(0, 1, [], [Page(0, -1, encode_cluster(Cluster(shards=1))), Page(0, 0, topics)])
    with pytest.raises(SettingsError, match=r"pages is 64, .* set pages = 1$"):
        Job(bus, Settings(shards=1, pages=64), Metrics())
    Job(bus, Settings(shards=1, pages=1), Metrics())


def started(bus: EmbeddedBus, checkpoint: Path, **settings: Any) -> None:
    """Run a job that needs no Java, because it ends before, or because the test takes Spark's place."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        Job(bus, Settings(checkpoint_dir=str(checkpoint), **settings), Metrics()).run()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def test_a_state_that_cannot_be_read_is_refused_by_its_page(bus: EmbeddedBus) -> None:
    bus.commit(0, 1, [], [Page(1, CLUSTER_PAGE, encode_cluster(Cluster(shards=2))), Page(1, 7, b"\x00")])
    told = r"^the state on data/bus\.db cannot be read: shard 1, page 7: state cannot be read: it begins with 00"
    with pytest.raises(JobError, match=told):
        Job(bus, Settings(shards=2), Metrics())


def test_an_engine_that_others_would_reach_unasked_makes_no_bus(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"metrics\.host: 0\.0\.0\.0 is not loopback"):
        run(Settings(bus=f"sqlite:{tmp_path}/bus.db", metrics_host="0.0.0.0"))
    assert not (tmp_path / "bus.db").exists()


@pytest.mark.parametrize("is_superseded", [False, True])
@pytest.mark.parametrize(
    ("error", "ends_with"),
    [
        (BusError("no answer in 20 s"), BusError),
        (JobError("the query failed: no answer in 20 s"), JobError),
        # As when the JVM is gone.
        (ConnectionError("no answer in 20 s"), JobError),
    ],
    ids=["bus", "query", "JVM"],
)
def test_a_job_that_fails_says_so_if_it_was_superseded(
    bus: EmbeddedBus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    ends_with: type[Exception],
    is_superseded: bool,
) -> None:
    class Began(Tenure):
        controller_epoch = 1

    def fail() -> None:
        raise error

    for _ in range(1 + is_superseded):
        bus.claim("job", {}, 1)
    monkeypatch.setattr("streaming.job.Tenure", Began)
    monkeypatch.setattr("streaming.job.choose_java", fail)
    with pytest.raises(SupersededError if is_superseded else ends_with, match="no answer in 20 s") as ended:
        started(bus, tmp_path / "checkpoint", metrics_port=-1)
    assert isinstance(ended.value, SupersededError) == is_superseded


def test_an_impossible_checkpoint_is_reported_before_the_claim(bus: EmbeddedBus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        JobError, match=r"/file cannot be used: .*/file: it is a file, .*; name another place in checkpoint\.dir"
    ):
        started(bus, tmp_path / "file", metrics_port=-1)
    with pytest.raises(JobError, match=r"/file/below cannot be used: "):
        started(bus, tmp_path / "file" / "below", metrics_port=-1)
    assert bus.claimed_epoch() == 0


def test_a_checkpoint_of_another_bus_is_reported_before_the_claim(bus: EmbeddedBus, tmp_path: Path) -> None:
    other = EmbeddedBus(tmp_path / "other.db")
    with checkpoint_lock(tmp_path / "checkpoint", Holder.of(other, "other.db")) as lock:
        assert lock.take()
        with pytest.raises(JobError, match=r"in use by process \d+ on bus other\.db"):
            started(bus, tmp_path / "checkpoint", metrics_port=-1)
    other.close()
    assert bus.claimed_epoch() == 0
    assert not (tmp_path / "checkpoint").exists()


def test_a_taken_metrics_port_is_reported_before_the_claim(bus: EmbeddedBus, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(MetricsError, match="choose another"):
            started(bus, tmp_path / "checkpoint", metrics_port=taken.getsockname()[1])
    assert bus.claimed_epoch() == 0


class Running:
    """A query that does not end."""

    def is_active(self) -> bool:
        return True

    def go_on(self) -> None:
        raise AssertionError("it never ended")


@pytest.fixture
def claim(bus: EmbeddedBus) -> Claim:
    return bus.claim("job", {}, 1)


@pytest.fixture
def ticker(bus: EmbeddedBus, claim: Claim) -> Iterator[Ticker]:
    ticker = Ticker(bus, claim, EngineClock(), 10, 10)
    ticker.start()
    yield ticker
    ticker.stop()
    ticker.join(TIMEOUT_S)


@pytest.fixture
def retention(bus: EmbeddedBus) -> Iterator[Retention]:
    retention = Retention(bus, Settings(), 1, Passes(0.01))
    retention.start()
    yield retention
    retention.stop()
    retention.join(TIMEOUT_S)


def test_a_dead_ticker_stops_the_job(
    bus: EmbeddedBus, claim: Claim, ticker: Ticker, retention: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed_out() -> int:
        raise TimeoutError("no answer")

    check_parts(bus, claim, ticker, retention, Running())
    with monkeypatch.context() as patched:
        patched.setattr(bus, "claimed_epoch", timed_out)
        ticker.join(TIMEOUT_S)
    with pytest.raises(JobError, match="ticks cannot be published: no answer"):
        check_parts(bus, claim, ticker, retention, Running())


def test_a_ticker_that_ended_for_another_job_does_not_hide_that(
    bus: EmbeddedBus, claim: Claim, ticker: Ticker, retention: Retention
) -> None:
    bus.claim("other", {}, 2)
    ticker.join(TIMEOUT_S)
    with pytest.raises(SupersededError, match="epoch 2"):
        check_parts(bus, claim, ticker, retention, Running())


def test_a_job_whose_retention_ended_stops_too(
    bus: EmbeddedBus, claim: Claim, ticker: Ticker, retention: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(through: int, retain: int) -> int:
        raise OverflowError("too large")

    check_parts(bus, claim, ticker, retention, Running())
    monkeypatch.setattr(bus, "thin", fail)
    retention.join(TIMEOUT_S)
    with pytest.raises(JobError, match=r"old events cannot be removed from the bus: OverflowError\('too large'\)"):
        check_parts(bus, claim, ticker, retention, Running())
    bus.claim("other", {}, 2)
    with pytest.raises(SupersededError, match="epoch 2"):
        check_parts(bus, claim, ticker, retention, Running())


class Late:
    """A decider whose query ends in each of the first two claims because a batch was too late."""

    claims = 0

    def __init__(self, *given: Any, **named: Any) -> None:
        Late.claims += 1

    def __enter__(self) -> "Late":
        return self

    def __exit__(self, *given: object) -> None:
        pass

    def is_active(self) -> bool:
        return False

    def go_on(self) -> None:
        if Late.claims <= 2:
            raise LateError("a request expired")
        raise JobError("enough")


def test_the_time_of_the_last_pass_is_kept_over_claims(
    bus: EmbeddedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[int, Passes]] = []

    class Noted(Retention):
        def __init__(self, bus: Any, settings: Settings, controller_epoch: int, passes: Passes) -> None:
            super().__init__(bus, settings, controller_epoch, passes)
            kept.append((controller_epoch, passes))

    monkeypatch.setattr(Late, "claims", 0)
    for name in ("choose_java", "check_fits", "build_session", "warm_up", "BatchListener"):
        monkeypatch.setattr(f"streaming.job.{name}", Mock())
    monkeypatch.setattr("streaming.job.launch", Mock(return_value="local[1]"))
    monkeypatch.setattr("streaming.job.Retention", Noted)
    monkeypatch.setattr("streaming.job.Decider", Late)
    with pytest.raises(JobError, match="enough"):
        started(bus, tmp_path / "checkpoint", metrics_port=-1)
    assert [epoch for epoch, _ in kept] == [1, 2, 3]
    assert len({id(passes) for _, passes in kept}) == 1
