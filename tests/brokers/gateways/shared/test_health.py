"""A gateway's answers to supervisors: /healthz and /readyz."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from brokers.gateways.shared import health
from brokers.gateways.shared.health import STUCK_AFTER_MS, liveness, readiness
from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.launch.gateway import GatewayProcess
from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from tests.support.controller_client import LOOPBACK
from tests.support.rules_engine import RulesEngine
from tests.support.scrape import scrape
from tests.support.waiting import TIMEOUT_S, wait_until

FOLLOWING = GatewayMeasures(gateway=100, is_serving=True, leader=101, quorum_epoch=7)


def test_a_gateway_is_ready_while_it_leads_or_follows() -> None:
    assert readiness(FOLLOWING).ok
    assert readiness(replace(FOLLOWING, leader=100, leads=True)).role == "leading"
    told = json.loads(readiness(FOLLOWING).body)
    assert (told["role"], told["leader"], told["quorum_epoch"], told["why"]) == ("following", 101, 7, [])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"is_serving": False}, "it neither leads nor follows: starting"),
        ({"leader": -1}, "it neither leads nor follows: waiting"),
        ({"leader": 100}, "it neither leads nor follows: waiting"),
        ({"is_cut_off": True}, "the bus accepts nothing from it"),
        ({"leads": True, "is_blind": True}, "it cannot read decisions, or cannot put them on disk"),
    ],
)
def test_what_keeps_a_gateway_from_being_ready_is_said(changed: dict[str, Any], why: str) -> None:
    found = readiness(replace(FOLLOWING, **changed))
    assert (found.ok, found.why) == (False, (why,))


def test_a_gateway_is_restarted_only_if_its_loop_stands_still() -> None:
    starting = GatewayMeasures(gateway=100, is_cut_off=True, is_blind=True)
    assert liveness(starting, STUCK_AFTER_MS).ok
    opening = GatewayMeasures(gateway=100, phase="it has been opening the metadata log for 3 s")
    assert readiness(opening).why == ("it neither leads nor follows: starting", opening.phase)
    assert liveness(starting, STUCK_AFTER_MS + 1).why == ("its event loop has stood still for 300 s",)
    assert health.__doc__ and "/healthz" in health.__doc__


@pytest.mark.kraft
def test_a_gateways_address_answers_from_before_its_bus_is_there(tmp_path: Path) -> None:
    port, metrics = free_ports(2)
    voter, folder = Voter(100, LOOPBACK, port), tmp_path / "gateway"
    settings = {"metrics.port": str(metrics)}
    bus = tmp_path / "bus.db"
    gateway = GatewayProcess(voter, [voter], random_cluster_id(), str(bus), folder, settings)
    engine = RulesEngine()

    def asked(path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(LOOPBACK, metrics, timeout=TIMEOUT_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())["role"]
        except OSError:
            return 0, ""
        finally:
            connection.close()

    try:
        gateway.start()
        wait_until(lambda: asked("/healthz") == (200, "starting"), "an answer")
        assert asked("/readyz") == (503, "starting")
        EmbeddedBus(bus).close()
        engine.start(bus)
        wait_until(lambda: asked("/readyz") == (200, "leading"), "the gateway to lead")
        assert scrape(f"http://{LOOPBACK}:{metrics}/metrics")["isrflow_gateway_leads"] == 1
    finally:
        gateway.kill()
        engine.stop()
