"""What ``isrflow cluster`` refuses, and what it says of an engine that cannot start."""

import contextlib
import re
from pathlib import Path

import pytest

from brokers.launch.kafka.preparing import prepare
from bus.embedded import EmbeddedBus
from bus.interface import Page
from cli.cluster.engine import EngineProcess
from cli.cluster.folder import held
from cli.cluster.led_cluster import LedCluster
from conf.kafka_versions import KAFKA_VERSION
from state.cluster import Cluster
from state.codec import encode_cluster
from tests.sinks.web.test_live import BROKERS
from tests.support.cluster_command import on_cluster
from tests.support.waiting import wait_until


def test_a_path_that_kafka_would_divide_is_refused(tmp_path: Path) -> None:
    prepare()
    code, said = on_cluster(tmp_path / "a,b", "up", "--plain", "--brokers", "1")
    assert (code, "has a comma" in said) == (2, True)
    assert not (tmp_path / "a,b").exists()


@pytest.mark.kraft
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
    assert "'isrflow cluster up' starts one" in said


def test_status_does_not_advise_to_start_an_engine_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    led = LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    with contextlib.closing(EmbeddedBus(tmp_path / "bus.db")) as bus:
        bus.commit(0, 1, [], [Page(0, -1, encode_cluster(Cluster(brokers=BROKERS)))])
    # It stands for an engine that commits nothing.
    monkeypatch.setattr(EngineProcess, "command", lambda self: ["sleep", "600"])
    led.engine.start()
    try:
        said = on_cluster(led.folder, "status")[1]
        assert f"process {led.engine.pid} runs, and commits nothing; its log is" in said
        assert re.search("^broker 1 +stopped +was active", said, re.MULTILINE)
        led.engine.pause()
        wait_until(lambda: led.engine.state == "paused", "the engine to stand still")
        assert f"'kill -CONT {led.engine.pid}' continues it" in on_cluster(led.folder, "status")[1]
    finally:
        led.engine.kill()
