"""An engine that hangs, as a process that was stopped does: what its page, its metrics and its health say meanwhile."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bus.interface import Bus
from bus.open_bus import open_bus
from tests.streaming.test_metrics import status
from tests.support.browser import Browser, browser, missing
from tests.support.engine import STANDBY, Engine, decided, encoded
from tests.support.freezing import freeze
from tests.support.scrape import metrics_url, scrape
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]
SETTINGS = ("metrics.port=0", "broker.session.timeout.ms=3600000")
CALM, NOBODY_KNOWS = "No partition is at risk", "Nobody knows whether partitions are at risk"


@contextlib.contextmanager
def frozen(bus_path: Path, process: psutil.Process) -> Iterator[None]:
    freeze(bus_path, [process])
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


def test_nothing_is_green_while_an_engine_or_its_standby_hangs(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    with contextlib.ExitStack() as stack:
        bus = stack.enter_context(contextlib.closing(open_bus(str(path))))
        engine = Engine(tmp_path, *SETTINGS)
        stack.callback(engine.kill)
        engine.wait_ready(bus)
        own = f"checkpoint.dir={tmp_path / 'standby'}"
        standby = Engine(tmp_path, *SETTINGS, own, command=STANDBY, log=tmp_path / "standby.log")
        stack.callback(standby.kill)
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
        wait_until(lambda: status(f"{other}/standbyz") == 200, "the standby to have loaded everything")
        with frozen(path, jvm_of(standby)):
            wait_until(lambda: status(f"{other}/standbyz") == 503, "the standby to say that it cannot take over")
        wait_until(lambda: status(f"{other}/standbyz") == 200, "the standby to wait for its turn again")
