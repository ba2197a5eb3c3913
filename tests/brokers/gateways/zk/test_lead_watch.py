"""A gateway that cannot lead makes room for another gateway. A single gateway goes on trying."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kazoo.protocol.states import KazooState

from brokers.gateways.shared.read_watch import ReadWatch
from brokers.gateways.zk import lead_watch
from brokers.gateways.zk.gateway import LEAD_AGAIN_S
from brokers.gateways.zk.lead_watch import FAILING_LIMIT_MAX_S, FAILING_LIMIT_S, LeadWatch
from bus.interface import BusError
from tests.brokers.gateways.zk.gateways import gateways
from tests.support.waiting import wait_until

# The engine's clock moves at ticks, each half a second, so its time-out is longer than that of the gateways.
POLICY: dict[str, object] = {"controller_quorum_fetch_timeout_ms": 1_500}
QUICK = {"gateway_heartbeat_interval_ms": 50, "controller_quorum_fetch_timeout_ms": 500}
FAILING = {"is_named": True, "leads": False, "is_loading": False}
LEADING = FAILING | {"leads": True}
STANDING_BY = FAILING | {"is_named": False}


def test_a_named_gateway_without_a_term_is_silent_after_a_while() -> None:
    watch = LeadWatch(ReadWatch(60))
    assert watch.look(0.0, **FAILING) is None
    assert watch.look(FAILING_LIMIT_S - 0.1, **FAILING) is None
    assert watch.look(FAILING_LIMIT_S, **FAILING) == "it cannot lead"
    assert watch.look(FAILING_LIMIT_S + 1_000, **FAILING) == "it cannot lead"
    assert watch.look(FAILING_LIMIT_S + 1_001, **LEADING) is None


def test_a_term_that_loads_takes_as_long_as_it_takes() -> None:
    watch = LeadWatch(ReadWatch(60))
    for now_s in range(1_000):
        assert watch.look(now_s, **(FAILING | {"is_loading": True})) is None


def test_the_limit_doubles_until_a_term_begins() -> None:
    watch, now_s, waits_s = LeadWatch(ReadWatch(60)), 0.0, []
    for _ in range(6):
        began_s = now_s
        while watch.look(now_s, **FAILING) is None:
            now_s += 1
        waits_s.append(now_s - began_s)
        assert watch.look(now_s, **STANDING_BY) is None, "another gateway is named, so this one waits for its turn"
    assert waits_s == [FAILING_LIMIT_S, 2 * FAILING_LIMIT_S, 4 * FAILING_LIMIT_S, *[FAILING_LIMIT_MAX_S] * 3]
    watch.look(now_s, **LEADING)
    watch.look(now_s, **FAILING)
    assert watch.look(now_s + FAILING_LIMIT_S, **FAILING) is not None


def test_a_gateway_that_does_not_reach_zookeeper_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead_watch, "FAILING_LIMIT_S", 0.5)
    with gateways(tmp_path, monkeypatch, 2, POLICY, **QUICK) as led:
        led.tree.cut.add(100)
        led.start(100)
        wait_until(lambda: led.named == 100, "the first gateway to be named")
        led.start(101)
        wait_until(lambda: led.leads(101), "the other gateway to lead")
        assert [one for one, _ in led.tree.epochs] == [101]


def test_a_gateway_that_loses_zookeeper_makes_room_while_its_term_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lead_watch, "FAILING_LIMIT_S", 0.5)
    with gateways(tmp_path, monkeypatch, 2, POLICY, **QUICK, zookeeper_session_timeout_ms=600_000) as led:
        heard: list[Callable[[str], None]] = []
        monkeypatch.setattr(led.tree, "add_listener", heard.append)
        led.start(100)
        wait_until(lambda: led.leads(100), "the first gateway to lead")
        led.start(101)
        heard[0](KazooState.SUSPENDED)
        wait_until(lambda: led.leads(101), "the other gateway to lead")
        assert [one for one, _ in led.tree.epochs] == [100, 101]


def test_the_only_gateway_leads_as_soon_as_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead_watch, "FAILING_LIMIT_S", 0.1)
    with gateways(tmp_path, monkeypatch, 1, POLICY, **QUICK) as led:
        led.tree.cut.add(100)
        led.start(100)
        wait_until(lambda: led.named == 100, "the gateway to be named")
        beats = wait_until(lambda: led.silence(100), "its heartbeats to stop")
        led.tree.cut.clear()
        wait_until(lambda: led.leads(100), "it to lead")
        wait_until(lambda: led.beats(100) > beats, "its heartbeats to go on")


def test_a_gateway_that_cannot_read_decisions_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 2, POLICY, **QUICK) as led:
        led.start(100)
        wait_until(lambda: led.leads(100), "the first gateway to lead")
        led.start(101)

        def unreadable(*given: Any) -> Any:
            raise BusError("no decision can be read")

        monkeypatch.setattr(led.buses[100], "changed", unreadable)
        monkeypatch.setattr(led.buses[100], "decided_columns", unreadable)
        wait_until(lambda: led.leads(101), "the other gateway to lead")


def test_terms_that_end_at_once_begin_after_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 1, POLICY, **QUICK) as led:
        led.tree.refuses_watches = True
        led.start(100)
        wait_until(lambda: len(led.tree.taken_s) >= 4, "some terms")
    pauses = [later - earlier for earlier, later in pairwise(led.tree.taken_s)]
    assert min(pauses) >= LEAD_AGAIN_S
