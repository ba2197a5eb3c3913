"""One job decides at a time, whatever starts, stops, dies, freezes or is lost. The other one stops, and logs why.

The tests share a bus, and each takes over the engine that decides from the test before it: to start one takes seconds
of CPU time. A test that runs alone starts its own. After each of them the whole decision log is what the rules decide.
So a kill between any two writes of a micro-batch neither repeats nor loses a decision.
"""

import json
import signal
from collections.abc import Iterator
from itertools import pairwise

import pytest

from conf.settings import Settings
from streaming.layout import misfit
from tests.streaming.relay import Relay
from tests.support.bus_rows import mark_of
from tests.support.engine import AWAITED, RUN, STANDBY, START_TIMEOUT_S, Engine, decided, decisions_of
from tests.support.units import starts_again
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

UNREACHABLE = 3
SUPERSEDED = 4
RESHARD = (*RUN, "--reshard")
POINTS = ("offsets", "state", "commit", "next")
# A standby takes over from an engine that is killed there.
LAST_POINT = "output"
DIED = "because the active engine has died"
MOVED_ASIDE = "moved the checkpoint aside"
RESHARDED = "laid the state out again"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    relay = Relay(tmp_path_factory.mktemp("relay"))
    yield relay
    relay.end()


@pytest.fixture
def relay(shared: Relay) -> Iterator[Relay]:
    yield shared
    shared.check_whole_log()


def said(engine: Engine) -> str:
    return engine.log.read_text()


def assert_ended(engine: Engine, code: int) -> list[dict[str, object]]:
    """Check that an engine ends with ``code`` as planned, which must not look like a crash. Return its log.

    That is JSON, also what its JVM and Pythons wrote.
    """
    assert engine.wait() == code
    assert "Traceback" not in said(engine)
    lines = [json.loads(line) for line in said(engine).splitlines()]
    assert not any(str(line["event"]).startswith("\tat ") for line in lines)
    assert not any("Python worker" in str(line["event"]) or "incubator" in str(line["event"]) for line in lines)
    assert [line["exit_code"] for line in lines if "exit_code" in line] == [code] * bool(code)
    return lines


def last_epoch_in(lines: list[dict[str, object]]) -> object:
    """Return the last epoch in which an engine began to decide. One that was late has claimed more than once."""
    return [line["controller_epoch"] for line in lines if line["event"] in ("started", "deciding")][-1]


def stands_by(engine: Engine) -> bool:
    assert engine.process.poll() is None, said(engine)
    return "standing by" in said(engine)


def test_one_of_two_jobs_started_at_once_decides(relay: Relay) -> None:
    jobs = [relay.start(command=relay.crashing(POINTS[0])) for _ in range(2)]
    wait_until(lambda: any(job.process.poll() is not None for job in jobs), "one of them to give way")
    gave_way, decides = sorted(jobs, key=lambda job: job.process.poll() is None)
    assert_ended(gave_way, SUPERSEDED)
    # So it does not take over in its turn.
    assert not starts_again("isrflow", SUPERSEDED)
    relay.decide(decides)


@pytest.mark.smoke
def test_a_job_killed_at_each_commit_point_leaves_one_whole_decision_log(relay: Relay) -> None:
    for point, next_point in pairwise((*POINTS, LAST_POINT)):
        relay.crash(point)
        successor = relay.deciding(command=relay.crashing(next_point))
        # It has repeated the batch that was cut off, on its predecessor's checkpoint.
        assert MOVED_ASIDE not in said(successor)
    assert len(decisions_of(relay.bus)) > 300


def test_a_standby_takes_over_from_a_killed_engine_in_mid_batch_and_from_one_that_stops(relay: Relay) -> None:
    relay.deciding(command=relay.crashing(LAST_POINT))
    bus = relay.bus
    epoch = bus.claimed_epoch()
    # The timeout never passes, so a standby takes over only if it knows that the active engine died or stops.
    one, other = standbys = [relay.start("controller.standby.timeout.ms=3600000", command=STANDBY) for _ in range(2)]
    wait_until(lambda: stands_by(one) and stands_by(other), "both standbys", START_TIMEOUT_S)
    assert bus.claimed_epoch() == epoch
    relay.crash(LAST_POINT)
    relay.decide(one)
    assert bus.claimed_epoch() == epoch + 1
    first, second = standbys if "claimed the controller" in said(one) else (other, one)
    assert DIED in said(first)
    assert stands_by(second)
    assert first.stop() == 0
    assert bus.resigned_epoch() == epoch + 1
    relay.decide(second)
    assert "because no engine decides" in said(second)
    assert bus.claimed_epoch() == epoch + 2
    # The batch that was cut off was repeated on the checkpoint of the killed engine.
    for engine in standbys:
        assert MOVED_ASIDE not in said(engine)


def test_a_second_job_takes_over_with_other_shards_and_the_first_stops(relay: Relay) -> None:
    first = relay.deciding()
    epoch = relay.bus.claimed_epoch()
    # The next test kills it.
    command = (*relay.crashing(LAST_POINT), "--reshard")
    second = relay.start("shards=5", "pages=3", relay.metrics, command=command)
    assert last_epoch_in(assert_ended(first, SUPERSEDED)) == epoch
    assert f"another job claimed controller epoch {epoch + 1}" in said(first)
    relay.decide(second)
    assert RESHARDED in said(second)


def test_a_standby_takes_over_with_other_shards_from_an_engine_that_is_killed_in_mid_batch(relay: Relay) -> None:
    relay.deciding(command=relay.crashing(LAST_POINT))
    bus, other = relay.bus, Settings(shards=3, pages=2)
    layouts, epoch = bus.layouts(), bus.claimed_epoch()
    sets = (f"shards={other.shards}", f"pages={other.pages}", "controller.standby.timeout.ms=3600000", relay.metrics)
    # An engine of a pair starts again after a take-over, and waits.
    assert starts_again("isrflow-standby", SUPERSEDED)
    standby = relay.start(*sets, command=(*STANDBY, "--reshard"))
    wait_until(lambda: stands_by(standby), "the standby", START_TIMEOUT_S)
    assert misfit(bus.image(), other) is not None
    assert (bus.layouts(), bus.claimed_epoch()) == (layouts, epoch)
    relay.crash(LAST_POINT)
    relay.decide(standby)
    assert DIED in said(standby)
    assert RESHARDED in said(standby)
    wait_until(lambda: "serving metrics" in said(standby), "the port that the killed engine had")
    # The batch that was cut off is decided from the state on the bus, because the checkpoint has the former pages.
    assert MOVED_ASIDE in said(standby)
    assert misfit(bus.image(), other) is None
    assert (bus.layouts(), bus.claimed_epoch()) == (layouts + 1, epoch + 1)


def test_a_frozen_job_does_not_delay_its_successor_and_writes_nothing_after_it(relay: Relay) -> None:
    frozen, epoch = relay.deciding(relay.metrics), relay.bus.claimed_epoch()
    relay.freeze(frozen)
    # After the test before this one, the frozen job has other shards.
    second = relay.start("takeover.timeout.ms=1000", relay.metrics, command=RESHARD)
    relay.decide(second)
    assert "the metrics port is not free" in said(second)
    frozen.signal_all(signal.SIGCONT)
    assert last_epoch_in(assert_ended(frozen, SUPERSEDED)) == epoch
    decided(relay.bus, relay.bus.publish([AWAITED]), engine=second)
    wait_until(lambda: "serving metrics" in said(second), "the second one's metrics")


def test_without_a_usable_checkpoint_the_job_continues_from_the_state_on_the_bus(relay: Relay) -> None:
    bus, engine = relay.bus, relay.deciding()
    assert engine.stop() == 0
    assert_ended(engine, 0)
    end, epoch = bus.decided_seq(), bus.claimed_epoch()
    relay.checkpoint.rename(relay.directory / "lost")
    engine = relay.start()
    wait_until(lambda: bus.claimed_epoch() == epoch + 1, "the claim")
    relay.decide(engine)
    wait_until(lambda: mark_of(bus.path, "passed") > end, "the batch after")
    assert engine.stop() == 0
    assert MOVED_ASIDE not in said(engine)
    # The first job's checkpoint is now behind, and the events that it would read next were removed.
    relay.checkpoint.rename(relay.directory / "used")
    (relay.directory / "lost").rename(relay.checkpoint)
    assert relay.trim() > end
    engine = relay.start()
    relay.decide(engine)
    assert MOVED_ASIDE in said(engine)


def test_a_lost_bus_stops_the_job(relay: Relay) -> None:
    engine, epoch = relay.deciding(), relay.bus.claimed_epoch()
    relay.lose_bus()
    try:
        assert last_epoch_in(assert_ended(engine, UNREACHABLE)) == epoch
    finally:
        relay.find_bus()
