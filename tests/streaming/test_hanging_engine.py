"""An engine that hangs, as a process that was stopped does: what its page, its metrics and its health say meanwhile."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bus.clock import now_ms
from bus.interface import Bus
from bus.open_bus import open_bus
from tests.streaming.test_metrics import status
from tests.support.browser import Browser, browser, missing
from tests.support.engine import STANDBY, START_TIMEOUT_S, Engine, decided, encoded
from tests.support.freezing import freeze
from tests.support.scrape import metrics_url, scrape
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark
needs_browser = pytest.mark.skipif(bool(missing()), reason=missing())
SETTINGS = ("metrics.port=0", "broker.session.timeout.ms=3600000")
HUNG = "Spark does not answer; ending its processes"
CALM, NOBODY_KNOWS = "No partition is at risk", "It is not known whether partitions are at risk"


@contextlib.contextmanager
def frozen(bus_path: Path, process: psutil.Process) -> Iterator[None]:
    freeze(bus_path, lambda: [process])
    try:
        yield
    finally:
        process.resume()


def jvm_of(engine: Engine) -> psutil.Process:
    (jvm,) = [one for one in psutil.Process(engine.process.pid).children() if one.name() == "java"]
    return jvm


def address_of(engine: Engine) -> str:
    return metrics_url(engine.log).removesuffix("/metrics")


def shows(window: Browser, selector: str, text: str) -> None:
    wait_until(lambda: text in window.text(selector), f"{text!r} in {selector}")


def make_topic(bus: Bus) -> None:
    epoch = bus.publish([encoded("broker_register", broker=1, incarnation="a")])
    beat = encoded("broker_heartbeat", broker=1, broker_epoch=epoch, want_fence=False, want_shutdown=False)
    decided(bus, bus.publish([beat, encoded("create_topic", topic="orders", partitions=3, replication_factor=1)]))


def started(stack: contextlib.ExitStack, directory: Path) -> tuple[Bus, Engine]:
    """Start an engine on a bus of its own, and end both with ``stack``."""
    bus = stack.enter_context(contextlib.closing(open_bus(str(directory / "bus.db"))))
    engine = Engine(directory, *SETTINGS)
    stack.callback(engine.kill)
    engine.wait_ready(bus)
    return bus, engine


def standing_by(stack: contextlib.ExitStack, directory: Path, *own: str) -> Engine:
    """Start a standby of that engine."""
    standby = Engine(directory, *SETTINGS, *own, command=STANDBY, log=directory / "standby.log")
    stack.callback(standby.kill)
    return standby


@pytest.mark.browser
@needs_browser
def test_nothing_is_green_while_an_engine_or_its_standby_hangs(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    with contextlib.ExitStack() as stack:
        bus, engine = started(stack, tmp_path)
        own = f"checkpoint.dir={tmp_path / 'standby'}"
        standby = standing_by(stack, tmp_path, own)
        make_topic(bus)
        window = stack.enter_context(browser(tmp_path / "chromium"))
        address = address_of(engine)
        window.open(address)
        shows(window, "#risk", CALM)

        # Its connections stay open, and nobody answers on them.
        with frozen(path, psutil.Process(engine.process.pid)):
            shows(window, "#trouble", "Nothing has been heard from the engine since ")
            shows(window, "#role", "not heard")
            shows(window, "#risk", NOBODY_KNOWS)
        shows(window, "#role", "deciding")
        shows(window, "#risk", CALM)

        # It answers, and its query decides nothing.
        with frozen(path, jvm_of(engine)):
            shows(window, "#trouble", "The engine has decided nothing since ")
            shows(window, "#role", "not deciding")
            shows(window, "#risk", NOBODY_KNOWS)
            assert [status(address + path) for path in ("/readyz", "/standbyz", "/healthz")] == [503, 503, 200]
            assert scrape(f"{address}/metrics")["kafka_controller_kafkacontroller_activecontrollercount"] == 0
            wait_until(lambda: scrape(f"{address}/metrics")["isrflow_bus_lag_events"] > 0, "ticks to be counted")
        shows(window, "#role", "deciding")
        shows(window, "#risk", CALM)
        assert scrape(f"{address}/metrics")["kafka_controller_kafkacontroller_activecontrollercount"] == 1

        wait_until(lambda: "serving metrics" in standby.log.read_text(), "the standby's address")
        other = address_of(standby)
        standbyz = f"{other}/standbyz"
        wait_until(lambda: status(standbyz) == 200, "the standby to have loaded everything", START_TIMEOUT_S)
        with frozen(path, jvm_of(standby)):
            wait_until(lambda: status(standbyz) == 503, "the standby to say that it cannot take over")
        wait_until(lambda: status(standbyz) == 200, "the standby to wait for its turn again")


def test_an_engine_or_a_standby_whose_jvm_hangs_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    with contextlib.ExitStack() as stack:
        bus, engine = started(stack, tmp_path)
        own = (f"checkpoint.dir={tmp_path / 'standby'}", "controller.standby.timeout.ms=3600000")
        standby = standing_by(stack, tmp_path, *own)
        wait_until(lambda: "standing by" in standby.log.read_text(), "the standby", START_TIMEOUT_S)
        jvms = [jvm_of(one) for one in (standby, engine)]
        freeze(path, lambda: jvms)
        for one, jvm in zip((standby, engine), jvms, strict=True):
            one.process.send_signal(signal.SIGTERM)
            assert one.wait() == 0, one.log.read_text()
            assert HUNG in one.log.read_text()
            assert not jvm.is_running()
        assert bus.resigned_epoch() == bus.claimed_epoch(), "no standby waits for it"


def test_an_engine_whose_jvm_hangs_ends_when_another_one_has_claimed(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    with contextlib.ExitStack() as stack:
        bus, engine = started(stack, tmp_path)
        jvm = jvm_of(engine)
        freeze(path, lambda: [jvm])
        bus.claim("other", {}, now_ms())
        assert engine.wait() == 4, engine.log.read_text()
        assert HUNG in engine.log.read_text()
        assert not jvm.is_running()
