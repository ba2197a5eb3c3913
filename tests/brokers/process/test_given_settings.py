"""Settings of brokers and gateways on their command lines: an error names the setting and what was expected."""

import click
import pytest
from click.testing import CliRunner

from brokers.gateways.kraft.__main__ import main as kraft_gateway
from brokers.gateways.kraft.settings import settings_of as of_gateway
from brokers.gateways.zk.__main__ import main as zookeeper_gateway
from brokers.gateways.zk.settings import settings_of as of_zookeeper_gateway
from brokers.mock.__main__ import main as mock_broker
from brokers.mock.settings import settings_of as of_mock
from brokers.process.given_settings import parsed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gateway.heartbeat.interval.ms=abc", "gateway.heartbeat.interval.ms: expected int, got 'abc'"),
        ("gateway.heartbeat.interval.ms=0", "gateway.heartbeat.interval.ms: expected int >= 1, got '0'"),
        ("gateway.hartbeat.interval.ms=5", "did you mean 'gateway.heartbeat.interval.ms'?"),
        ("security.protocol=TLS", "security.protocol: expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("ssl.endpoint.identification.algorithm=no", "expected one of https, (empty), got 'no'"),
        ("allow.everyone.if.no.acl.found=yes", "allow.everyone.if.no.acl.found: expected true or false, got 'yes'"),
        ("sasl.password=canary", "unknown setting 'sasl.password'"),
    ],
)
def test_a_wrong_setting_of_a_gateway_is_named(given: str, said: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        parsed([given], of_gateway)
    assert said in caught.value.message
    assert "canary" not in caught.value.message


def test_settings_of_the_engine_alone_are_passed_over() -> None:
    for settings_of in (of_gateway, of_zookeeper_gateway, of_mock):
        assert parsed(["leader.imbalance.check.interval.seconds=7"], settings_of) == settings_of({})
        with pytest.raises(click.BadParameter, match="unknown setting 'nothing'"):
            parsed(["nothing=7"], settings_of)


@pytest.mark.parametrize("bus", ["kafak://host:1", "kafka://host"])
@pytest.mark.parametrize("program", [kraft_gateway, zookeeper_gateway, mock_broker])
def test_a_url_of_no_bus_is_wrong_use_and_not_waited_for(program: click.Command, bus: str) -> None:
    done = CliRunner().invoke(program, ["--bus", bus])
    assert (done.exit_code, f"Invalid value for '--bus': '{bus}' is not a bus" in done.stderr) == (2, True)
