"""Which of the engine's settings brokers get in their files."""

import json
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from brokers.gateways.kraft.security.settings import security_of
from brokers.gateways.kraft.settings import settings_of
from brokers.launch.kafka.cluster import KafkaCluster, broker_specs
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from cli.cluster.access import SECURE_SETTINGS, access_of_brokers, access_of_gateways, secure_bootstrap
from cli.cluster.certificates import FOLDER, Certificates
from cli.cluster.engine import COLD_START_MAX_MS, free_metrics_port, start_remaining_ms
from cli.cluster.file_settings import broker_settings
from cli.cluster.folder import open_cluster
from cli.cluster.led_cluster import LedCluster
from conf.loader import load
from conf.security.exposure import protection_of
from isrflow.kafka.client_config import VARIABLE
from state.cluster import Cluster
from tests.support.cluster_command import on_cluster


def test_brokers_files_get_the_engines_settings_in_force() -> None:
    started, altered = {"num.partitions": "6", "min.insync.replicas": "2"}, {"default.replication.factor": "3"}
    assert broker_settings(Cluster(settings=started, config=altered | {"num.partitions": "many"})) == {
        "broker.heartbeat.interval.ms": "2000",
        "default.replication.factor": "3",
        "num.partitions": "6",
        "replica.lag.time.max.ms": "30000",
    }


def test_a_secure_cluster_is_described_with_certificates_that_up_makes(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    led = LedCluster.create(folder, tmp_path / "bus.db", brokers=2, gateways=1, secure=True)
    kafka = KafkaCluster.open(folder)
    opened = LedCluster.open(kafka)
    assert opened
    for cluster in (led, opened):
        [gateway] = cluster.gateways.values()
        assert f"ssl.keystore.location={folder}/{FOLDER}/gateway-100.pem" in gateway.command()
        assert "security.protocol=SSL" in gateway.command()
    keystores = {node.spec.overrides["listener.name.controller.ssl.keystore.location"] for node in kafka.nodes.values()}
    assert keystores == {f"{folder}/{FOLDER}/broker-1.pem", f"{folder}/{FOLDER}/broker-2.pem"}
    addresses = secure_bootstrap(kafka.nodes.values()).split(",")
    assert len({*addresses, *kafka.bootstrap.split(",")}) == 4, "each broker has a port of its own for certificates"
    assert set(SECURE_SETTINGS) <= set(opened.engine.command())
    access = access_of_gateways(load(None, SECURE_SETTINGS))
    assert access["super.users"] == "User:client"
    of_brokers = access_of_brokers(access, kafka.nodes.values())
    assert of_brokers == access | {"super.users": "User:client;User:broker-1;User:broker-2"}
    assert access_of_brokers(access | {"authorizer.class.name": ""}, kafka.nodes.values()) == {}
    open_ones = KafkaCluster.create(tmp_path / "open", broker_specs(1, led.kafka.nodes[1].spec.voters))
    assert access_of_brokers(access, open_ones.nodes.values()) == {}, "clients of these listeners prove nothing"
    Certificates(folder).issue(["gateway-100"])
    engine = load(None, (text for text in opened.engine.command() if "=" in text and text.startswith("metrics.")))
    # So protected, others may reach it.
    assert protection_of(replace(engine, metrics_host="0.0.0.0"), {}).token
    assert (folder / FOLDER / "metrics.token").stat().st_mode & 0o777 == 0o600
    # A gateway starts with them.
    assert security_of(settings_of(opened.gateways[100].settings))
    opened.delete()
    assert not folder.exists()


def test_a_cluster_that_was_handed_back_has_neither_engine_nor_gateways_and_may_be_adopted(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    led = LedCluster.create(folder, tmp_path / "bus.db", brokers=1, gateways=1, zookeeper=True)
    code, said = on_cluster(folder, "adopt", "--bus", str(tmp_path / "next.db"))
    assert (code, said) == (2, f"Error: {folder} has no brokers that were handed back\n")
    code, said = on_cluster(folder, "hand-back")
    assert (code, "zookeeper does not run" in said) == (3, True)
    led.changed(handed_back=True)
    code, said = on_cluster(folder, "hand-back")
    assert (code, said) == (1, "Error: the brokers have a controller of their own already\n")
    code, said = on_cluster(folder, "status", "--format", "json")
    found = json.loads(said.splitlines()[0])
    assert (code, found["engine"], found["gateways"], found["zookeeper"]["state"]) == (3, None, [], "stopped")
    [gateway] = led.changed(handed_back=False, adopts=True).gateways.values()
    assert "--adopt" in gateway.command()
    opened = LedCluster.open(KafkaCluster.open(folder))
    assert opened is not None
    opened.delete()
    assert not folder.exists()


def test_gateways_get_what_the_environment_says_of_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    led = LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    assert led.access["super.users"] == ""
    monkeypatch.setenv("ISRFLOW_SUPER_USERS", "User:admin")
    assert led.access["super.users"] == "User:admin"


def test_later_commands_connect_to_the_bus_as_the_remembered_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Set first, so that the test's end removes what is set in between.
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    conf, client, folder = tmp_path / "engine.toml", tmp_path / "client.properties", tmp_path / "kafka"
    conf.write_text(f'kafka.client.config = "{client}"\n')
    LedCluster.create(folder, tmp_path / "bus.db", brokers=1, conf=conf)
    assert open_cluster(folder)[1]
    assert os.environ[VARIABLE] == str(client)
    # Who stops a cluster need not have its settings.
    conf.unlink()
    assert open_cluster(folder)[1]


def test_relative_paths_in_the_settings_file_count_from_where_the_cluster_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    made_in, later_in = tmp_path / "made", tmp_path / "later"
    for directory in (made_in, later_in):
        directory.mkdir()
    conf = tmp_path / "engine.toml"
    conf.write_text('kafka.client.config = "client.properties"\nmetrics.token.file = "token"\n')
    monkeypatch.chdir(made_in)
    LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1, conf=conf)
    monkeypatch.chdir(later_in)
    monkeypatch.setenv("ISRFLOW_METRICS_SSL_KEYSTORE_LOCATION", "key.pem")
    led = open_cluster(tmp_path / "kafka")[1]
    assert led
    assert os.environ[VARIABLE] == f"{made_in}/client.properties"
    command = led.engine.command()
    assert f"metrics.token.file={made_in}/token" in command
    assert f"metrics.ssl.keystore.location={later_in}/key.pem" in command, (
        "a variable's path is relative to where it is set"
    )


@pytest.mark.parametrize(
    ("named", "used"),
    [
        ("", "{folder}/kafka/engine/checkpoint"),
        ("check/point", "{folder}/check/point"),
        ("hdfs://name:8020/isrflow", "hdfs://name:8020/isrflow"),
    ],
)
def test_the_engines_checkpoint_is_where_the_settings_file_says(
    named: str, used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    conf = tmp_path / "engine.toml"
    conf.write_text(f'checkpoint.dir = "{named}"\n')
    led = LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1, conf=conf)
    given = [text for text in led.engine.command() if text.startswith("checkpoint.dir=")]
    assert given[-1] == f"checkpoint.dir={used.format(folder=tmp_path)}"


def test_an_engine_is_not_awaited_for_longer_than_a_start_takes_whatever_its_clock_said(tmp_path: Path) -> None:
    with closing(EmbeddedBus(tmp_path / "bus.db")) as bus:
        bus.claim("ahead", {}, now_ms() + 3_600_000)
        assert 0 < start_remaining_ms(bus) <= COLD_START_MAX_MS


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_the_port_of_the_metrics_is_used_if_nobody_has_it(host: str, family: int) -> None:
    with socket.socket(family) as other:
        other.bind((host, 0))
        port = other.getsockname()[1]
        other.listen()
        assert free_metrics_port(host, port) == 0
    assert free_metrics_port(host, port) == port
