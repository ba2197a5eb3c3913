"""What ``isrflow cluster`` refuses, and what it says of an engine that cannot start."""

from pathlib import Path

import pytest

from brokers.launch.kafka.preparing import prepare
from bus.embedded import EmbeddedBus
from cli.cluster.folder import held
from cli.cluster.led_cluster import LedCluster
from conf.kafka_versions import KAFKA_VERSION
from tests.support.cluster_command import on_cluster


def test_a_path_that_kafka_would_divide_is_refused(tmp_path: Path) -> None:
    prepare()
    code, said = on_cluster(tmp_path / "a,b", "up", "--plain", "--brokers", "1")
    assert (code, "has a comma" in said) == (2, True)
    assert not (tmp_path / "a,b").exists()


@pytest.mark.cluster
def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    conf = tmp_path / "isrflow.toml"
    conf.write_text('metrics.host = "0.0.0.0"\n')
    code, said = on_cluster(
        tmp_path / "kafka", "up", "--bus", str(tmp_path / "bus.db"), "--conf", str(conf), "--brokers", "1"
    )
    assert code == 3
    assert "engine ended by itself" in said
    assert "metrics.token" in said


def test_two_commands_do_not_change_one_cluster_at_once(tmp_path: Path) -> None:
    led = LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    with held(led.folder):
        for command in (["up"], ["down", "--delete"]):
            code, said = on_cluster(led.folder, *command)
            assert (code, "another command starts, stops or changes the cluster" in said) == (1, True)
    assert on_cluster(led.folder, "down", "--delete") == (0, "nothing was running\n")
    assert not led.folder.exists()


def test_the_command_that_created_a_cluster_starts_it_again(tmp_path: Path) -> None:
    led = LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    led.gateways[100].folder.mkdir()
    prepare()
    # The bus is gone, so nothing is started.
    same = ("--brokers", "1", "--gateways", "2", "--kafka", KAFKA_VERSION)
    code, said = on_cluster(led.folder, "up", *same)
    assert (code, "is gone" in said) == (3, True), said
    code, said = on_cluster(led.folder, "up", *same[2:], "--brokers", "2", "--set", "num.partitions=2", "--secure")
    assert (code, "leave out --brokers, --secure, --set," in said) == (2, True), said


def test_status_says_what_does_not_run_and_that_no_engine_decides(tmp_path: Path) -> None:
    led = LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    EmbeddedBus(tmp_path / "bus.db").close()
    code, said = on_cluster(led.folder, "status")
    assert code == 3
    assert "not running: gateway 100, gateway 101, broker 1; no engine decides on" in said
