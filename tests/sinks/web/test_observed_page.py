"""The page of a shadow in a real browser. Its bus has a recorded log of Kafka's own controllers."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bus.open_bus import open_bus
from cli.commands import command
from sinks.web.observed_site import ObservedSite
from streaming.past_process import PastProcess
from tests.brokers.shadow.worlds import LOGS
from tests.sinks.web.test_browser import HOUR_MS, old_after, shows
from tests.support.browser import LEFT, Browser, browser, missing
from tests.support.observing import LiveShadow, broker
from tests.support.page_measures import contrasts
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]

# Between the loss of two brokers and the violation.
FAILED_MS = 1_795_961_628_000


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, window: Browser) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("shadow") / "incident.db")
    done = CliRunner().invoke(command, ["shadow", "read", str(LOGS / "kafka-4.0.2.tar.xz"), "--bus", path])
    assert done.exit_code == 0, done.output
    with contextlib.closing(open_bus(path, read_only=True)) as bus:
        site = ObservedSite(bus, PastProcess(path))
        try:
            yield f"http://127.0.0.1:{site.serve(0)}/"
            window.open("about:blank")
        finally:
            site.close()


@pytest.mark.smoke
def test_the_page_says_what_is_observed_and_what_was_wrong(window: Browser, address: str) -> None:
    window.open(address)
    shows(window, "#role", "observing")
    shows(window, "#facts", "observing cluster e3MRJKlRmmddE3VS9SQaRw · until offset 558 of its log, ")
    shows(window, "#tiles", "1\nviolation\n0\ndivergences")
    shows(window, "#legend", "divergence")
    shows(window, "#timeline-text", "2 unclean elections, 1 violation, ")
    shows(window, "#timeline", "newest")
    assert window.run("return document.querySelectorAll('#timeline rect.violations').length") == 1
    shows(window, "#decisions", "single-0: violation: leader 3 is fenced, or not registered")
    shows(window, "#brokers", "fenced for ")
    assert window.run("return document.querySelector('#trouble').hidden"), window.text("#trouble")
    assert "healthy?" not in window.text("footer")
    assert window.complaints() == []


def test_an_address_opens_the_middle_of_the_failure(window: Browser, address: str) -> None:
    window.open("about:blank")
    window.open(f"{address}#at={FAILED_MS}")
    shows(window, "#past", "after event 50, which is at offset 442 of its log.")
    shows(window, "#tiles", "2\noffline")
    shows(window, "#rows", "single-0")
    window.click("#rows button[data-key='single-0']")
    shows(window, "#detail", "Broker 3 was fenced at offset 404: its session expired.")
    assert "Broker 3 registered" not in window.text("#detail")
    window.click("#close")
    window.press("l")
    wait_until(lambda: window.run("return document.querySelector('#past').hidden"), "the newest state")
    window.run("document.querySelector('#timeline').focus()")
    window.press(LEFT)
    shows(window, "#past", "of its log.")
    assert window.complaints() == []


def test_a_broker_is_asked_about_with_a_command_that_a_shadow_answers(window: Browser, address: str) -> None:
    window.open("about:blank")
    window.open(f"{address}#broker=2")
    shows(window, "#detail-body", "isrflow whatif --kill 2")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(window: Browser, address: str, theme: str) -> None:
    window.theme(theme)
    window.open(address)
    shows(window, "#tiles", "violation")
    assert {name: ratio for name, ratio in contrasts(window).items() if ratio < 4.5} == {}


def test_a_shadow_that_goes_on_shows_its_lag_and_one_that_stopped_is_not_green(
    window: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_after(monkeypatch, HOUR_MS)
    live = LiveShadow(tmp_path / "live.db")
    site = ObservedSite(live.bus, PastProcess(str(tmp_path / "live.db")))
    try:
        live.tell("seed", ago_ms=2 * HOUR_MS, brokers=[broker(1), broker(2)])
        live.tell("no_change", ago_ms=1_000, offset=1, came_after_ms=45)
        window.open(f"http://127.0.0.1:{site.serve(0)}/")
        shows(window, "#role", "observing")
        shows(window, "#facts", "lag 45 ms")
        assert window.text("#trouble") == ""
        live.tell("no_change", ago_ms=500, offset=1, came_after_ms=70)
        shows(window, "#facts", "lag 70 ms")
        old_after(monkeypatch, 1_500)
        shows(window, "#role", "not observing")
        shows(window, "#trouble", "'isrflow shadow run' has stopped, or reaches no controller.")
        assert window.run("return document.querySelector('#role').className") == "pill bad"
        assert window.complaints() == []
    finally:
        window.open("about:blank")
        site.close()
        live.close()
