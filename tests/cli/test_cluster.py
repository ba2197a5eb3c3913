"""``isrflow cluster`` starts, finds, shows and stops real brokers behind gateways."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.node import KafkaError
from brokers.launch.kafka.preparing import prepare, prepare_tools
from brokers.launch.kafka.tools import TOPICS, run_tool
from brokers.launch.ports import free_ports
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.interface import Bus, BusError, NoBusError
from cli.cluster import bus_place
from cli.cluster.bus_place import BusPlace
from cli.cluster.engine import EngineProcess, decides, free_metrics_port, start_remaining_ms
from cli.cluster.led_cluster import LedCluster
from tests.support.cluster_command import on_cluster
from tests.support.engine import encoded
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until

HEARTBEAT = encoded("broker_heartbeat", broker=1, broker_epoch=1, want_fence=False, want_shutdown=False)


def status_of(folder: Path) -> tuple[int, dict[str, Any]]:
    code, said = on_cluster(folder, "status", "--format", "json")
    return code, json.loads(said.splitlines()[0])


@pytest.mark.spark
@pytest.mark.kraft
def test_one_command_starts_a_cluster_and_one_stops_it(cluster_folder: Path, tmp_path: Path) -> None:
    prepare_tools()
    conf = tmp_path / "isrflow.toml"
    conf.write_text('num.partitions = 4\nsuper.users = "User:ANONYMOUS"\n')
    places = ("--bus", str(tmp_path / "bus.db"), "--conf", str(conf))
    code, said = on_cluster(cluster_folder, "up", "--brokers", "2", "--gateways", "2", "--heap", "384m", *places)
    assert code == 0, said
    assert "num.partitions=4\n" in (cluster_folder / "node-1" / "server.properties").read_text()
    assert "User:ANONYMOUS" in (cluster_folder / "gateway-100" / "gateway.log").read_text()
    assert "no engine decides" in said
    code, found = status_of(cluster_folder)
    assert code == 0
    assert (found["engine"]["state"], found["engine"]["decides"]) == ("running", True)
    assert f"the live page: {found['engine']['page']}\n" in said
    with urlopen(found["engine"]["page"]) as page:
        assert b"<title>isrflow" in page.read()
    assert [row["leads"] for row in found["gateways"]].count(True) == 1
    assert [(row["state"], row["decided"]) for row in found["nodes"]] == [("running", "active")] * 2

    bootstrap = KafkaCluster.open(cluster_folder).bootstrap
    run_tool(TOPICS, bootstrap, ["--create", "--topic", "t", "--partitions", "1", "--replication-factor", "2"])
    KafkaCluster.open(cluster_folder).nodes[2].kill()
    code, said = on_cluster(cluster_folder, "status")
    assert code == 3
    assert "not running: broker 2" in said
    code, said = on_cluster(cluster_folder, "up")
    assert code == 0, said
    assert status_of(cluster_folder)[1]["nodes"][1]["decided"] == "active"

    led = LedCluster.open(KafkaCluster.open(cluster_folder))
    assert led is not None
    assert led.bus.cluster().has_eligible_leaders, "as in a cluster that Kafka's own tool formats"
    names = ", ".join(service.name for service in led.services)
    assert on_cluster(cluster_folder, "down", "--delete") == (0, f"stopped: {names}\n")
    assert {service.state for service in led.services} == {"stopped"} and not cluster_folder.exists()
    assert not (tmp_path / "bus.db").exists(), "the bus was made with the cluster"


@pytest.mark.kraft
def test_an_engine_that_already_decides_leads_and_is_left_alone(cluster_folder: Path, tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    engine = RulesEngine()
    engine.start(bus.path)
    try:
        code, said = on_cluster(cluster_folder, "up", "--brokers", "1", "--heap", "384m", "--bus", str(bus.path))
        assert code == 0, said
        assert f"an engine decides on {bus.path}" in said
        code, found = status_of(cluster_folder)
        assert (code, found["engine"]["state"], found["engine"]["pid"]) == (0, "elsewhere", None)
        assert [(row["name"], row["state"]) for row in found["gateways"]] == [
            ("gateway 100", "running"),
            ("gateway 101", "running"),
        ]
        assert on_cluster(cluster_folder, "down") == (0, "stopped: gateway 100, gateway 101, broker 1\n")
        assert decides(bus)
        # Both gateways lose their disks, and the bus no longer has all decisions that their brokers have read.
        for gateway in (100, 101):
            shutil.rmtree(cluster_folder / f"gateway-{gateway}" / "log")
        bus.passed(bus.decided_seq())
        bus.forget(bus.last_seq() - 1)
        code, said = on_cluster(cluster_folder, "rebuild", "--gateway", "101")
        assert (code, "was rebuilt from" in said) == (0, True), said
        code, said = on_cluster(cluster_folder, "up")
        assert code == 0, said
        code, said = on_cluster(cluster_folder, "rebuild", "--gateway", "101")
        assert (code, "gateway 101 is running" in said) == (1, True), said
        assert [row["decided"] for row in status_of(cluster_folder)[1]["nodes"]] == ["active"]
        assert on_cluster(cluster_folder, "down")[0] == 0
        assert on_cluster(cluster_folder, "down", "--delete") == (0, "nothing was running\n")
        assert bus.path.exists(), "it was there before"
    finally:
        engine.stop()
        bus.close()


def test_no_engine_is_found_if_none_decides(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    assert not decides(bus), "nobody ever claimed it"
    bus.claim("gone", {}, now_ms() - 3_600_000)
    bus.publish([HEARTBEAT])
    assert not decides(bus, 0.3), "brokers alone decide nothing"
    engine = RulesEngine()
    engine.start(bus.path)
    try:
        assert decides(bus, 5.0)
    finally:
        engine.stop()
    bus.close()


def test_an_engine_that_has_just_claimed_the_bus_is_waited_for(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.claim("starting", {}, now_ms() - 59_000)
    engine = RulesEngine()
    try:
        # The engine may take a minute to start. The command waits for the last second of it, whatever the time-out.
        assert not decides(bus, 0.0)
        bus.claim("starting again", {}, now_ms())
        engine.start(bus.path)
        assert decides(bus, 0.0) or bus.decided_seq() > 0, "it may have decided before anybody looks"
    finally:
        engine.stop()
        bus.close()


def test_a_starting_engine_is_seen_behind_older_events_of_brokers(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.publish([HEARTBEAT] * 1_500)
    bus.claim("starting", {}, now_ms())
    assert start_remaining_ms(bus) > 0
    bus.close()


def test_checking_for_a_bus_does_not_create_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(error: BusError) -> Callable[..., Bus]:
        def open_bus(url: str, *, create: bool = True, read_only: bool = False) -> Bus:
            assert read_only
            raise error

        return open_bus

    place = BusPlace("kafka://nowhere:9092")
    monkeypatch.setattr(bus_place, "open_bus", said(NoBusError("there is no topic")))
    assert not place.exists()
    monkeypatch.setattr(bus_place, "open_bus", said(BusError("no answer")))
    with pytest.raises(BusError, match="no answer"):
        place.exists()


def test_a_bus_with_brokers_of_another_cluster_is_refused(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    engine = RulesEngine()
    engine.start(bus.path)
    try:
        bus.publish([b'{"kind":"broker_register","time_ms":1,"broker":7,"incarnation":"a"}'])
        wait_until(lambda: bus.claimed_epoch() == 1, "the engine's claim")
        assert decides(bus)
        code, said = on_cluster(tmp_path / "kafka", "up", "--bus", str(bus.path))
    finally:
        engine.stop()
        bus.close()
    assert code == 1
    assert "has brokers of another cluster: 7; choose another bus with --bus" in said
    assert not (tmp_path / "kafka").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--plain", "--gateways", "2"), "--plain excludes --voters"),
        (("--plain", "--conf", "nowhere.toml"), "--plain excludes --voters"),
        (("--voters", "100@h:1", "--gateways", "2"), "--voters names gateways that run already"),
        (("--voters", "100@h:1", "--bus", "bus.db"), "--voters names gateways that run already"),
        (("--voters", "100"), "'100' is not a voter: expected ID@HOST:PORT"),
        (("--bus", "kafka://"), "kafka://host:port"),
        (("--set", "x"), "expected KEY=VALUE"),
        (("--brokers", "0"), "--brokers"),
        (("--heap", "lots"), "heap"),
        (("--set", "log retention.ms=1"), "is not a setting of one line"),
        (("--conf", "nowhere.toml"), "cannot read nowhere.toml"),
    ],
)
def test_impossible_combinations_of_options_are_wrong_use(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    # The clone may have a bus with brokers, for example after the tutorial.
    monkeypatch.setenv("ISRFLOW_BUS", str(tmp_path / "bus.db"))
    code, said = on_cluster(tmp_path / "kafka", "up", *arguments)
    assert code == 2, said
    assert complaint in said
    assert not (tmp_path / "kafka").exists()


def test_a_cluster_whose_bus_was_removed_gets_no_new_one(tmp_path: Path) -> None:
    led = LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    code, said = on_cluster(led.folder, "status")
    assert code == 3
    assert f"there is no bus at {tmp_path / 'bus.db'}" in said
    led.gateways[100].folder.mkdir()
    prepare()
    code, said = on_cluster(led.folder, "up")
    assert code == 3
    assert f"the bus {tmp_path / 'bus.db'} is gone" in said
    assert not (tmp_path / "bus.db").exists()


def test_only_the_clusters_own_files_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "mine").write_text("x")
    led = LedCluster.create(folder, folder / "bus.db", brokers=2, gateways=2)
    EmbeddedBus(folder / "bus.db").close()
    for service in led.services:
        (service.folder / "logs").mkdir(parents=True)
    kept = f"nothing was running\n{folder} is kept, because it holds other files\n"
    assert on_cluster(folder, "down", "--delete") == (0, kept)
    assert [path.name for path in folder.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["engine", "gateway-100", "node-1"])
def test_a_cluster_is_not_created_over_folders_that_it_would_take_for_its_own(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(KafkaError, match=f"{name} already exists and belongs to no cluster"):
        LedCluster.create(tmp_path, tmp_path / "bus.db", brokers=1)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_cluster_is_never_stored_without_its_gateways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class KilledError(Exception):
        pass

    def killed(*paths: Path) -> None:
        raise KilledError

    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr(os, "link", killed)
        LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    assert on_cluster(tmp_path / "kafka", "status")[0] == 3
    LedCluster.create(tmp_path / "kafka", tmp_path / "bus.db", brokers=1)
    assert LedCluster.open(KafkaCluster.open(tmp_path / "kafka")) is not None


@pytest.mark.parametrize("what", ["status", "down"])
def test_a_folder_without_a_cluster_is_named_in_the_error(what: str, tmp_path: Path) -> None:
    code, said = on_cluster(tmp_path / "none", what)
    assert code == 3
    assert f"{tmp_path / 'none'} has no cluster" in said


def test_metrics_use_another_port_if_theirs_is_taken(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    engine = EngineProcess(tmp_path / "engine", tmp_path / "bus.db", [f"metrics.port={port}"])
    assert f"metrics.port={port}" in engine.command()
    assert free_metrics_port("127.0.0.1", port) == port
    with socket.create_server(("127.0.0.1", port)):
        assert free_metrics_port("127.0.0.1", port) == 0
        assert "metrics.port=0" in engine.command(), "the port is checked at each start"
    assert free_metrics_port("127.0.0.1", -1) == -1


def test_the_engine_finds_files_whose_paths_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "isrflow.toml"
    conf.write_text('metrics.token.file = "token"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISRFLOW_METRICS_SSL_KEYSTORE_LOCATION", "tls/key.pem")
    command = EngineProcess(tmp_path / "engine", tmp_path / "bus.db", conf=conf).command()
    assert f"metrics.token.file={tmp_path / 'token'}" in command
    assert f"metrics.ssl.keystore.location={tmp_path / 'tls' / 'key.pem'}" in command
