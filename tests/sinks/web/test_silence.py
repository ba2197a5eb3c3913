"""A page whose engine is not heard, or does not decide, in a real browser: nothing on it is green."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.clock import now_ms
from sinks.metrics import Metrics
from sinks.web import push
from sinks.web.site import Site
from state.cluster import Cluster
from tests.sinks.web.test_browser import HOUR_MS, contrasts, old_after, served, shows, window
from tests.sinks.web.test_live import Scene
from tests.sinks.web.test_page import Served, Stream
from tests.sinks.web.test_partitions import partition, topic
from tests.support.browser import Browser, missing
from tests.support.relay import Relay
from tests.support.waiting import wait_until

__all__ = ["served", "window"]
pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]
NOBODY_KNOWS = "It is not known whether partitions are at risk"
AT_REST = "return !document.body.classList.contains('old')"


@pytest.fixture
def relay(served: Served) -> Iterator[Relay]:
    made = Relay(("127.0.0.1", served.port or 0))
    yield made
    made.cut()


def healthy(window: Browser, served: Served, address: str) -> None:
    served.batch(*(partition(number) for number in range(3)))
    window.open(f"http://{address}/")
    shows(window, "#risk", "No partition is at risk")
    shows(window, "#role", "deciding")


def test_a_page_that_hears_nothing_says_since_when_and_claims_nothing(
    window: Browser, served: Served, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "BEAT_INTERVAL_S", 0.5)
    healthy(window, served, relay.address)
    # The connection stays open, as that of a process that was stopped.
    relay.loses_answers.set()
    shows(window, "#trouble", "Nothing has been heard from the engine since ")
    shows(window, "#role", "not heard")
    shows(window, "#risk", NOBODY_KNOWS)
    assert re.search(r"At [0-9:]{8} all 3 partitions had a leader", window.text("#risk"))
    assert "No partition is at risk" not in window.text("body")
    assert window.run("return document.title") == "(not heard) isrflow"
    assert window.run("return document.querySelector('#role').className") == "pill bad"
    shows(window, "#timeline-text", " is not known.")
    shows(window, "#tiles", "were offline")
    shows(window, "#brokers", "was active")
    # A firewall has forgotten the connections: these stay silent for ever, and each new one is answered.
    relay.loses_open_connections()
    shows(window, "#risk", "No partition is at risk")
    shows(window, "#role", "deciding")
    assert window.text("#trouble") == ""


def test_an_idle_engine_stays_green_and_a_lost_connection_does_not(
    window: Browser, served: Served, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "BEAT_INTERVAL_S", 1.0)
    healthy(window, served, relay.address)
    stream = Stream(served.port)
    for _ in range(5):
        stream.next("beat")
        assert window.run(AT_REST)
    stream.close()
    relay.cut()
    shows(window, "#trouble", "The engine does not answer. The page tries again.")
    shows(window, "#role", "not heard")
    shows(window, "#risk", NOBODY_KNOWS)


def test_an_engine_that_does_not_decide_is_shown_as_such_though_it_answers(
    window: Browser, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy(window, served, f"127.0.0.1:{served.port}")
    old_after(monkeypatch, 1_500)
    shows(window, "#role", "not deciding")
    shows(window, "#trouble", "The engine has decided nothing since ")
    shows(window, "#risk", NOBODY_KNOWS)
    told = window.text("#trouble")
    # Each second it says again for how long it has not committed.
    shows(window, "#facts", "last commit 4")
    assert window.text("#trouble") == told
    served.bus.publish([b'{"kind":"delete_topic","time_ms":0,"topic":"later"}'] * 62)
    shows(window, "#facts", "60 events behind")

    def decides_again() -> bool:
        served.batch(partition(0), partition(1, isr=(1, 2)), partition(2))
        return "orders-1" in window.text("#rows") and window.text("#role") == "deciding"

    wait_until(decides_again, "the page to say that the engine decides")


def test_a_standby_says_that_the_engine_which_decides_is_silent(
    window: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_after(monkeypatch, HOUR_MS)
    scene = Scene(tmp_path / "bus.db")
    scene.cluster = Cluster(clock_ms=now_ms() - 2 * HOUR_MS, brokers=scene.cluster.brokers)
    scene.batch(topic(partition(0)), hidden=True)
    metrics = Metrics(controller_id="b")
    metrics.stands_by()
    site = Site(scene.bus, metrics)
    try:
        window.open(f"http://127.0.0.1:{site.serve('127.0.0.1', 0)}/")
        shows(window, "#trouble", "No engine has decided anything since ")
        shows(window, "#risk", NOBODY_KNOWS)
        shows(window, "#timeline-text", "What happened since ")
        scene.cluster = Cluster(clock_ms=now_ms(), brokers=scene.cluster.brokers)
        scene.batch(topic(partition(0)), hidden=True)
        shows(window, "#risk", "No partition is at risk")
        shows(window, "#timeline-text", "The engine that decides has the time line.")
        shows(window, "#decisions-text", "the engine that decides has them")
    finally:
        window.open("about:blank")
        site.close()
        scene.bus.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_may_be_old_can_be_read(
    window: Browser, served: Served, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    old_after(monkeypatch, 1_500)
    window.theme(theme)
    window.open(f"http://127.0.0.1:{served.port}/")
    wait_until(lambda: not window.run(AT_REST) and window.text("#rows"), "an old state")
    assert {name: ratio for name, ratio in contrasts(window).items() if ratio < 4.5} == {}
