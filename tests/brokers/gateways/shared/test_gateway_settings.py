"""The settings of gateways: where each comes from, and the errors for wrong ones."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from brokers.gateways.kraft import process as kraft
from brokers.gateways.kraft import settings as kraft_settings
from brokers.gateways.zk import process as zookeeper
from brokers.gateways.zk import settings as zookeeper_settings
from brokers.voters import Voter
from cli.commands import command
from conf.environment import variable_of
from conf.layers import SettingsError, flat_file
from conf.loader import KEYS, load
from tests.support.settings_page import GATEWAY_REFERENCE

KINDS: Any = (kraft_settings, zookeeper_settings)
VOTERS = "100@a:9093,101@b:9093"
PLACE = {"node.id": "101", "controller.quorum.voters": VOTERS, "cluster.id": "c"}
KRAFT = PLACE | {"metadata.log.dir": "log"}


def sets(given: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in given.items()]


def test_the_reference_file_holds_every_key_with_its_default() -> None:
    documented = flat_file(GATEWAY_REFERENCE)
    assert set(documented) == kraft_settings.SOURCE.layers.keys | zookeeper_settings.SOURCE.layers.keys
    for kind in KINDS:
        own = {key: value for key, value in documented.items() if key in kind.SOURCE.layers.keys}
        assert kind.settings_of(own) == kind.Settings()


@pytest.mark.parametrize("kind", KINDS)
def test_each_layer_overrides_the_one_below(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(
        'node.id = 7\nbus = "sqlite:a"\ncluster.id = "file"\nmetrics.port = 1\n"max.connections.per.ip" = 3\n'
    )
    environment = {"ISRFLOW_BUS": "b", "ISRFLOW_METRICS_PORT": "2", "ISRFLOW_CLUSTER_ID": "", "ISRFLOW_CONF": "other"}
    settings = kind.load(file, ["metrics.port=3"], environment=environment)
    assert (settings.node_id, settings.bus, settings.cluster_id) == (7, "sqlite:b", "file")
    assert (settings.metrics_port, settings.max_connections_per_ip) == (3, 3)
    assert kind.load(file, bus="c", environment=environment).bus == "sqlite:c"


def test_one_environment_may_serve_engines_and_gateways() -> None:
    engines = {variable_of(key): "1" for key in KEYS if key not in kraft_settings.SOURCE.layers.keys}
    assert kraft_settings.load(environment=engines) == kraft_settings.Settings()
    gateways = {"ISRFLOW_NODE_ID": "100", "ISRFLOW_ZOOKEEPER_CONNECT": "a:1"}
    assert load(environment=gateways) == load()
    with pytest.raises(SettingsError, match=r"ISRFLOW_NODE_IDS: no setting .*; did you mean ISRFLOW_NODE_ID\?"):
        kraft_settings.load(environment={"ISRFLOW_NODE_IDS": "1"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gateway.heartbeat.interval.ms=abc", "gateway.heartbeat.interval.ms: expected int, got 'abc'"),
        ("gateway.heartbeat.interval.ms=0", "gateway.heartbeat.interval.ms: expected int >= 1, got '0'"),
        ("gateway.hartbeat.interval.ms=5", "did you mean 'gateway.heartbeat.interval.ms'?"),
        ("zzz=5", "unknown setting 'zzz'; conf/gateway-reference.toml lists all settings"),
        ("security.protocol=TLS", "security.protocol: expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("ssl.endpoint.identification.algorithm=no", "expected one of https, (empty), got 'no'"),
        ("allow.everyone.if.no.acl.found=yes", "allow.everyone.if.no.acl.found: expected true or false, got 'yes'"),
        ("sasl.password=canary", "unknown setting 'sasl.password'"),
        ("listeners=:9093", "listeners: expected one listener such as CONTROLLER://0.0.0.0:9093, got ':9093'"),
        ("bus=kafak://host:1", "bus: expected sqlite:PATH or kafka://host:port[,host:port][/prefix], got"),
        ("zookeeper.connect=a:1", "unknown setting 'zookeeper.connect'"),
        ("min.insync.replicas=2", "unknown setting 'min.insync.replicas'"),
    ],
)
def test_a_wrong_setting_is_named(given: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        kraft_settings.load(sets=[given])
    assert said in str(caught.value)
    assert "canary" not in str(caught.value)


def test_the_place_among_the_voters_follows_from_the_settings() -> None:
    given = kraft_settings.settings_of(KRAFT | {"rebuild.from.dirs": "x, y"})
    identity = kraft.checked(given).identity
    assert identity.here == Voter(101, "b", 9093)
    assert (identity.place, identity.copies) == (("b", 9093), (Path("x"), Path("y")))
    listening = kraft_settings.settings_of(KRAFT | {"listeners": "CONTROLLER://[::]:1"})
    assert kraft.checked(listening).identity.place == ("::", 1)
    given_names = {"controller.listener.names": "OTHER,CONTROLLER"}
    assert kraft.checked(kraft_settings.settings_of(KRAFT | given_names)).identity.listener is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"node.id": "102"}, "node.id: expected one of the voters 100@a:9093,101@b:9093, got 102"),
        ({"controller.quorum.voters": ""}, "controller.quorum.voters: '' is not a voter: expected ID@HOST:PORT"),
        ({"cluster.id": ""}, "cluster.id: expected the id of the brokers' cluster"),
        ({"metadata.log.dir": ""}, "metadata.log.dir: expected the directory of the metadata log, got ''"),
        ({"listeners": "OTHER://a:1"}, "listeners: expected a listener named CONTROLLER, got 'OTHER://a:1'"),
        ({"gateway.heartbeat.interval.ms": "2000"}, "expected gateway.heartbeat.interval.ms < controller.quorum."),
        ({"security.protocol": "SSL"}, "security.protocol=SSL needs ssl.keystore.location"),
        ({"delegation.token.secret.key.file": "/none"}, "delegation.token.secret.key.file: /none: No such file"),
        ({"metrics.host": "0.0.0.0"}, "metrics.host: 0.0.0.0 is not loopback"),
    ],
)
def test_settings_that_do_not_fit_end_a_gateway_before_it_starts(changed: dict[str, str], said: str) -> None:
    given = [part for text in sets(KRAFT | changed) for part in ("--set", text)]
    done = CliRunner().invoke(command, ["gateway", "kraft", *given])
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_a_gateway_in_zookeeper_mode_needs_a_zookeeper() -> None:
    with pytest.raises(SettingsError, match=r"zookeeper.connect: expected HOST:PORT"):
        zookeeper.checked(zookeeper_settings.settings_of(PLACE))
    named = {"zookeeper.connect": "z:2181", "listeners": "PLAINTEXT://a:1"}
    assert zookeeper.checked(zookeeper_settings.settings_of(PLACE | named)).identity.zookeeper == "z:2181"


@pytest.mark.parametrize("kind", ["kraft", "zookeeper"])
@pytest.mark.parametrize("bus", ["kafak://host:1", "kafka://host"])
def test_a_url_of_no_bus_is_wrong_use_and_not_waited_for(kind: str, bus: str) -> None:
    done = CliRunner().invoke(command, ["gateway", kind, "--bus", bus])
    assert (done.exit_code, f"--bus {bus}: bus: expected sqlite:PATH or kafka://" in done.stderr) == (2, True)
