"""A gateway names the settings in the file of a real broker that the engine's values overrule."""

import json
from pathlib import Path

import pytest

from brokers.launch.kafka.tools import CONFIGS
from bus.image import read_image
from tests.support.real_cluster import RealCluster, led_by_rules
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kraft, pytest.mark.timeout(600)]
TOLD = "a setting in a broker's file does not count"


def test_a_gateway_asks_a_broker_and_names_what_does_not_count(tmp_path: Path) -> None:
    cluster = RealCluster(
        tmp_path, brokers=1, **{"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
    )
    with led_by_rules(cluster):
        log = cluster.gateways[100].log_file
        wait_until(lambda: TOLD in log.read_text(), "the gateway to say what does not count")
        (line,) = [json.loads(one) for one in log.read_text().splitlines() if TOLD in one]
        told = {name: line[name] for name in ("broker", "setting", "file", "in_force")}
        assert told == {"broker": 1, "setting": "min.insync.replicas", "file": "2", "in_force": "1"}
        cluster.tool(CONFIGS, line["set_it"].removeprefix("kafka-configs "))
        wait_until(lambda: read_image(cluster.bus.image()).cluster.config == {"min.insync.replicas": "2"}, "the value")
