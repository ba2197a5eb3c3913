"""The page in a real browser: drawn without a complaint, pushed, used by mouse and by keyboard, in both themes.

Its content, its limits and its questions are tested without a browser in test_page.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sinks.web import health, push, view
from state.broker import Broker, BrokerState
from tests.sinks.sample import NOW_MS, decision
from tests.sinks.web.test_live import BROKERS
from tests.sinks.web.test_page import Served, Stream, Told
from tests.sinks.web.test_partitions import partition
from tests.support.browser import DOWN, ENTER, ESCAPE, LEFT, Browser, browser, missing
from tests.support.page_measures import CUT, contrasts
from tests.support.waiting import wait_until

HOUR_MS = 3_600_000
pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


def old_after(monkeypatch: pytest.MonkeyPatch, age_ms: int) -> None:
    """Take a state for old from this age on."""
    for module in (view, push, health):
        monkeypatch.setattr(module, "COMMIT_AGE_MS_MAX", age_ms)


@pytest.fixture
def served(window: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    # Unlike an engine, a test does not commit again while it looks at the page.
    old_after(monkeypatch, HOUR_MS)
    made = Served(tmp_path / "bus.db", Told())
    made.batch(
        *(partition(number, isr=(1, 2)) for number in range(3)),
        decisions=(decision("leader_and_isr", "REPLICA_FENCED", topic="orders", partition=0, leader=1, isr=[1, 2]),),
    )
    yield made
    # The page must not complain in a later test that this one's engine is gone.
    window.open("about:blank")
    window.complaints()
    made.close()


def shows(window: Browser, selector: str, text: str) -> None:
    wait_until(lambda: text in window.text(selector), f"{text!r} in {selector}")


def opened(window: Browser, served: Served) -> None:
    window.open(f"http://127.0.0.1:{served.port}/")
    shows(window, "#rows", "orders-2")


@pytest.mark.smoke
def test_the_page_shows_the_cluster_and_follows_it(window: Browser, served: Served) -> None:
    opened(window, served)
    shows(window, "#role", "deciding")
    shows(window, "#tiles", "under-replicated")
    shows(window, "#brokers", "broker 3")
    shows(window, "#decisions", "because a replica was fenced")
    served.batch(partition(0, leader=2, isr=(2,)), partition(1), partition(2))
    shows(window, "#rows", "under-replicated")
    wait_until(lambda: "orders-1" not in window.text("#rows"), "two partitions to recover")
    served.batch(*(partition(number) for number in range(3)))
    shows(window, "#risk", "No partition is at risk")
    racks = {1: "east", 2: "east", 3: "west"}
    served.batch(
        *(partition(number, isr=(1, 2)) for number in range(3)),
        brokers={number: replace(BROKERS[number], rack=rack) for number, rack in racks.items()},
    )
    shows(window, "#racks", "If a rack were lost: east: 3 offline · west: nothing")
    assert window.complaints() == []


def test_a_metadata_entity_is_named_and_its_values_are_not_shown(window: Browser, served: Served) -> None:
    opened(window, served)
    bob = {
        "entity_type": "client_quota",
        "names": {"user": None, "client-id": "bob"},
        "values": {"request_percentage": "50.0"},
    }
    token = {"entity_type": "delegation_token", "names": {"token-id": "abc"}, "values": {}}
    acls = decision("acls", "ACLS_CHANGED", created=[], deleted=[])
    said = (decision("entity", "ENTITY_CHANGED", **bob), decision("entity", "TOKEN_EXPIRED", **token), acls)
    served.batch(partition(0), decisions=said)
    shows(window, "#decisions", "client quota of user (default), client-id bob: changed, because it was requested")
    shows(window, "#decisions", "delegation token of token-id abc: removed, because its time is over")
    shows(window, "#decisions", "ACLs: changed")
    assert "50.0" not in window.text("#decisions")
    assert window.complaints() == []


def test_what_one_decision_says_is_not_told_of_others_like_it(window: Browser, served: Served) -> None:
    opened(window, served)
    said = [decision("broker", "BROKER_SESSION_EXPIRED", broker=number, state="fenced", seq=2) for number in (1, 2)]
    said += [decision("leader_and_isr", "LEADER_FENCED", topic="orders", partition=0, leader=-1, isr=[1], seq=2)]
    for number in (1, 2):
        fields = {"topic": "orders", "partition": number, "leader": 3, "leader_epoch": 1, "isr": [3]}
        said.append(decision("leader_and_isr", "LEADER_FENCED", seq=2, **fields))
    said.append(decision("broker", "BROKER_UNFENCED", broker=3, state="active", seq=2))
    served.batch(partition(0), decisions=tuple(said))
    shows(window, "#decisions", "broker 1 and 1 more are fenced, because")
    shows(window, "#decisions", "orders-0: no leader, ISR 1, because its leader was fenced (and 2 more partitions)")
    shows(window, "#decisions", "broker 3 is active, because")


def test_a_broker_that_does_not_serve_says_since_when(window: Browser, served: Served) -> None:
    opened(window, served)
    fenced = {
        number: Broker(number, number, "i", BrokerState.fenced, None, (), (), NOW_MS - heard_s * 1_000)
        for number, heard_s in ((1, 249), (2, 300_000))
    }
    expired = decision("broker", "BROKER_SESSION_EXPIRED", broker=1, state="fenced", seq=2, time_ms=NOW_MS - 240_000)
    served.batch(partition(0), decisions=(expired,), brokers=BROKERS | fenced)
    shows(window, "#brokers", "fenced for 4 min, since ")
    shows(window, "#brokers", ", because it fell silent · ")
    # Nothing says when broker 2 was fenced.
    shows(window, "#brokers", "fenced, last heard 3 days ago, at ")
    assert window.complaints() == []


def test_a_replica_in_the_isr_on_a_dead_broker_says_so(window: Browser, served: Served) -> None:
    opened(window, served)
    fenced = Broker(3, 3, "i", BrokerState.fenced, None, (), (), NOW_MS)
    short = (partition(0, leader=-1, isr=(3,)), partition(1, leader=-1, isr=(2,)), partition(2, leader=1, isr=(1, 3)))
    served.batch(*short, brokers={1: BROKERS[1], 3: fenced})
    chips = "return [...document.querySelectorAll('#rows td:last-child')].map((cell) => cell.innerText.trim())"
    expected = ["1 2 3 fenced", "1 2 unregistered 3", "1 2 3 fenced"]
    wait_until(lambda: window.run(chips) == expected, "the words beside the replicas")
    looks = "return [...document.querySelectorAll('#rows tr:first-child .replica')].map((one) => one.className)"
    assert window.run(looks) == ["replica out", "replica out", "replica gone"]
    window.click("#rows button[data-key='orders-0']")
    shows(window, "#detail", "3 fenced")
    assert window.complaints() == []


def test_an_engine_that_is_not_ready_says_why(window: Browser, served: Served) -> None:
    opened(window, served)
    served.metrics.committed(decisions=[], clusters=[], through=9, last_seq=9, now_ms=NOW_MS, engine_ms=NOW_MS + 60_000)
    shows(window, "#facts", "the engine's clock is 60 s ahead of its machine's")
    served.metrics.gave_up()
    served.metrics.stands_by()
    shows(window, "#role", "standby")
    shows(window, "#facts", "Another engine decides. Its page has the time line and the last decisions.")


def test_a_partition_is_explained_by_mouse(window: Browser, served: Served) -> None:
    opened(window, served)
    window.click("#rows button[data-key='orders-1']")
    shows(window, "#detail", "Event 1 created orders-1.")
    window.click("#close")
    assert not window.run("return document.querySelector('#detail').open")


def test_everything_is_reached_by_keyboard(window: Browser, served: Served) -> None:
    opened(window, served)
    window.press("/", *"orders-2", ENTER)
    shows(window, "#detail-title", "orders-2")
    shows(window, "#detail", "Event 1 created orders-2.")
    window.press(ESCAPE)
    wait_until(lambda: not window.run("return document.querySelector('#detail').open"), "the end of the detail")
    window.run("document.querySelector('#rows button').focus()")
    window.press(DOWN, ENTER)
    shows(window, "#detail-title", "orders-1")
    window.press(ESCAPE)
    window.run("document.querySelector('#timeline').focus()")
    window.press(LEFT)
    shows(window, "#past", "as it was")
    shows(window, "#rows", "offline")
    window.press("l")
    wait_until(lambda: window.run("return document.querySelector('#past').hidden"), "now")
    shows(window, "#rows", "orders-2")


def test_a_topic_is_found_by_a_part_of_its_name_and_shows_healthy_partitions(window: Browser, served: Served) -> None:
    opened(window, served)
    window.press("/", *"rder")
    shows(window, "#found", "orders")
    window.press(DOWN, ENTER)
    shows(window, "#detail-title", "orders")
    shows(window, "#detail-body", "orders-1")
    assert window.run("return document.querySelectorAll('#detail-body tbody tr').length") == 2
    window.run("document.querySelector('#detail-body tbody button').focus()")
    window.press(DOWN, ENTER)
    shows(window, "#detail-title", "orders-1")
    assert window.complaints() == []


def test_an_address_opens_what_it_names(window: Browser, served: Served) -> None:
    opened(window, served)
    window.click("#brokers button[data-broker-id='3']")
    shows(window, "#detail-title", "broker 3")
    shows(window, "#detail-body", "isrflow brokers fence 3 --dry-run")
    assert window.run("return location.hash") == "#broker=3"
    address = window.run("return location.href")
    window.press(ESCAPE)
    wait_until(lambda: window.run("return location.hash") == "", "an address of nothing")
    window.open("about:blank")
    window.open(address)
    shows(window, "#detail-title", "broker 3")
    window.open(address.replace("broker=3", "partition=orders-2"))
    shows(window, "#detail-body", "Event 1 created orders-2.")
    assert window.complaints() == []


def test_an_address_opens_the_past(window: Browser, served: Served) -> None:
    opened(window, served)
    window.run("document.querySelector('#timeline').focus()")
    window.press(LEFT)
    wait_until(lambda: "#at=" in window.run("return location.href"), "an address of the past")
    address = window.run("return location.href")
    window.open("about:blank")
    window.open(address)
    shows(window, "#past", "after event 7")


def test_what_one_event_led_to_is_one_line_that_opens(window: Browser, served: Served) -> None:
    opened(window, served)
    fields = {"topic": "orders", "leader": 1, "leader_epoch": 2, "isr": [1], "seq": 2}
    said = [decision("broker", "BROKER_SESSION_EXPIRED", broker=3, state="fenced", seq=2)]
    said += [decision("leader_and_isr", "LEADER_FENCED", partition=number, **fields) for number in range(5)]
    said += [decision("leader_and_isr", "REPLICA_FENCED", partition=number, **fields) for number in range(5, 12)]
    served.batch(partition(0), decisions=tuple(said))
    shows(window, "#decisions summary", "broker 3 is fenced, because it fell silent")
    shows(window, "#decisions summary", "7 partitions because a replica was fenced; 5 partitions because its leader")
    assert "orders-5" not in window.text("#decisions")
    window.run("document.querySelector('#decisions summary').focus()")
    window.press(ENTER)
    shows(window, "#decisions", "orders-5")
    assert window.complaints() == []


def test_a_page_too_many_says_so_and_comes_in_later(
    window: Browser, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "BROWSERS_MAX", 1)
    other = Stream(served.port)
    other.next("status")
    window.open(f"http://127.0.0.1:{served.port}/")
    shows(window, "#trouble", "The engine serves too many pages at the moment")
    other.close()
    shows(window, "#rows", "orders-2")
    assert window.run("return document.querySelector('#trouble').hidden")
    assert [one for one in window.complaints() if "503" not in one] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(window: Browser, served: Served, theme: str) -> None:
    window.theme(theme)
    opened(window, served)
    assert {name: ratio for name, ratio in contrasts(window).items() if ratio < 4.5} == {}


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_long_names_fit_into_a_window_of_any_width(
    window: Browser, served: Served, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    long = "customer-payments.settlement-events." + "x" * 150
    large = Broker(1_000_000_001, 9, "i", BrokerState.active, f"rack-{long}", (), (), 0)
    monkeypatch.setitem(BROKERS, large.broker, large)
    fields = {"topic": long, "partition": 0, "leader": large.broker, "isr": [large.broker], "leader_epoch": 1}
    window.resize(width)
    window.open(f"http://127.0.0.1:{served.port}/")
    served.batch(
        partition(0, replicas=(large.broker, 2, 3), leader=large.broker, isr=(large.broker,)),
        decisions=(
            decision("leader_and_isr", "LEADER_FENCED", seq=2, **fields),
            decision("rejected", "MALFORMED", seq=2, index=1, field="topic", message="y" * 150),
        ),
        name=long,
    )
    shows(window, "#rows", long)
    shows(window, "#decisions", "y" * 150)
    assert window.run(CUT) == []
