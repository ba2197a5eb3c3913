"""A doctor compares a broker's file with the settings that a gateway is started with."""

import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokers.launch.kafka.cluster import broker_specs
from brokers.launch.kafka.properties import server_properties
from brokers.voters import Voter
from cli.cluster.certificates import FOLDER, Certificates
from cli.commands import command
from conf.security.authority import Authority

CANARY = "canary-of-a-broker"


class Pair:
    """A broker and a gateway that fit each other, as 'isrflow cluster up --secure' makes them."""

    def __init__(self, folder: Path) -> None:
        certificates = Certificates(folder)
        certificates.issue(["broker-1", "broker-2", "gateway-100"])
        self.authority = Authority(folder / FOLDER)
        (spec,) = broker_specs(1, [Voter(100, "127.0.0.1", 9093)])
        self.file = folder / "server.properties"
        self.file.write_text(server_properties(certificates.given_to(spec, 9094), folder, 1))
        self.gateway = certificates.gateway_settings(100)

    def change(self, former: str, now: str) -> None:
        text = self.file.read_text()
        assert former in text
        self.file.write_text(text.replace(former, now))

    def compared(self) -> tuple[int, str]:
        sets = (part for key, value in self.gateway.items() for part in ("--set", f"{key}={value}"))
        result = CliRunner().invoke(command, ["doctor", "--broker", str(self.file), *sets])
        assert CANARY not in result.output
        return result.exit_code, result.output


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_what_fits_is_fine(pair: Pair) -> None:
    code, said = pair.compared()
    assert code == 0, said
    assert "ok    principal  User:broker-1 is broker 1" in said


def test_what_the_engine_overrules_in_a_brokers_file_is_named(pair: Pair) -> None:
    pair.file.write_text(f"{pair.file.read_text()}\nmin.insync.replicas=2\nunclean.leader.election.enable=true\n")
    code, said = pair.compared()
    assert code == 0, said
    for name in ("min.insync.replicas=2", "unclean.leader.election.enable=true"):
        assert f"{name} does not count: the engine's value does" in said


def test_different_protocols_are_found(pair: Pair) -> None:
    pair.gateway = {}
    code, said = pair.compared()
    assert code == 3
    assert "the broker has SSL for CONTROLLER, the gateway PLAINTEXT" in said


def test_another_brokers_certificate_is_found(pair: Pair) -> None:
    pair.change("broker-1.pem", "broker-2.pem")
    code, said = pair.compared()
    assert code == 3
    assert "User:broker-2 is broker 2, and node.id is 1" in said


def test_rules_that_make_no_broker_are_found(pair: Pair) -> None:
    pair.gateway["ssl.principal.mapping.rules"] = "DEFAULT"
    code, said = pair.compared()
    assert code == 3
    assert "User:CN=broker-1 is no broker, and node.id is 1" in said


def test_certificates_that_the_other_side_refuses_are_found(pair: Pair, tmp_path: Path) -> None:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    pair.authority.issue("broker-1", begin=now - 3 * day, valid=day)
    code, said = pair.compared()
    assert code == 3
    assert "the handshake fails: certificate has expired" in said
    pair.authority.issue("broker-1")
    pair.authority.issue("gateway-100", ["gateway.example"])
    assert "the handshake fails: IP address mismatch" in pair.compared()[1]
    stranger = Authority(tmp_path / "other")
    pair.authority.issue("gateway-100")
    pair.change("broker-1.pem", "stranger.pem")
    stranger.issue("broker-1").replace(tmp_path / FOLDER / "stranger.pem")
    assert "the handshake fails: " in pair.compared()[1]
    (tmp_path / FOLDER / "stranger.pem").unlink()
    assert "the broker's ssl.keystore.location: " in pair.compared()[1]


@pytest.mark.parametrize("servers", ["127.0.0.1:9093", "127.0.0.1:9093,other:9093", "CONTROLLER://127.0.0.1:9093"])
def test_a_broker_may_name_bootstrap_servers_in_place_of_voters(pair: Pair, servers: str) -> None:
    pair.change("controller.quorum.voters=100@127.0.0.1:9093", f"controller.quorum.bootstrap.servers={servers}")
    code, said = pair.compared()
    assert code == 0, said
    assert "a handshake of both sides' certificates, for 127.0.0.1" in said


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("", "the broker's file names no controller: set controller.quorum.bootstrap.servers"),
        ("controller.quorum.bootstrap.servers=100@a:1", "bootstrap.servers: '100@a:1' is not HOST:PORT"),
    ],
)
def test_a_principal_is_only_shown_after_a_handshake(pair: Pair, line: str, wrong: str) -> None:
    pair.change("controller.quorum.voters=100@127.0.0.1:9093", line)
    code, said = pair.compared()
    assert (code, "principal" in said) == (3, False)
    assert wrong in said


def test_a_keystore_that_is_not_pem_is_not_judged(pair: Pair) -> None:
    pair.change("ssl.keystore.type=PEM", "ssl.keystore.type=JKS")
    code, said = pair.compared()
    assert (code, "cannot be read here" in said, "principal" in said) == (0, True, False)


def test_passwords_are_compared_and_not_shown(pair: Pair, tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[broker-1]\npassword = "{CANARY}"\n')
    pair.gateway |= {"security.protocol": "SASL_SSL", "sasl.credentials.file": str(users)}
    pair.change("CONTROLLER:SSL", "CONTROLLER:SASL_SSL")
    assert "sasl.mechanism.controller.protocol is GSSAPI, and the gateway accepts SCRAM-SHA-512" in pair.compared()[1]
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="broker-1" password="{CANARY}";'
    with pair.file.open("a") as file:
        file.write("sasl.mechanism.controller.protocol=SCRAM-SHA-512\n")
        file.write(f"listener.name.controller.scram-sha-512.sasl.jaas.config={jaas}\n")
    code, said = pair.compared()
    assert code == 0, said
    pair.change(CANARY, CANARY + "x")
    assert "user 'broker-1' or its password is not in sasl.credentials.file" in pair.compared()[1]


def test_settings_that_a_gateway_refuses_are_found(pair: Pair) -> None:
    pair.gateway["ssl.keystore.location"] = "/none.pem"
    code, said = pair.compared()
    assert code == 3
    assert "ssl.keystore.location: /none.pem: No such file" in said


def test_settings_of_a_gateway_may_be_in_its_file(pair: Pair, tmp_path: Path) -> None:
    conf = tmp_path / "gateway.toml"
    conf.write_text("\n".join(f'"{key}" = "{value}"' for key, value in pair.gateway.items()))
    result = CliRunner().invoke(command, ["doctor", str(conf), "--broker", str(pair.file)])
    assert (result.exit_code, "User:broker-1 is broker 1" in result.output) == (0, True), result.output
    result = CliRunner().invoke(command, ["doctor", str(conf), "--broker", str(pair.file), "kafka-broker"])
    assert (result.exit_code, "goes with --broker" in result.output) == (2, True)


def test_authorizers_are_compared(pair: Pair) -> None:
    assert "acls" not in pair.compared()[1]
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    pair.gateway["authorizer.class.name"] = authorizer
    code, said = pair.compared()
    assert code == 3
    assert f"authorizer.class.name is not set on the broker, and {authorizer} here" in said
    pair.file.write_text(f"{pair.file.read_text()}\nauthorizer.class.name={authorizer}\n")
    code, said = pair.compared()
    assert (code, "enforce ACLs alike" in said) == (0, True)
    pair.gateway["allow.everyone.if.no.acl.found"] = "true"
    assert "allow.everyone.if.no.acl.found is false on the broker, and true here" in pair.compared()[1]
    del pair.gateway["authorizer.class.name"]
    code, said = pair.compared()
    assert code == 0, "a gateway may go by super.users alone"


def test_keys_of_delegation_tokens_are_compared_and_not_shown(pair: Pair, tmp_path: Path) -> None:
    assert "tokens" not in pair.compared()[1]
    with pair.file.open("a") as file:
        file.write(f"delegation.token.secret.key={CANARY}\n")
    code, said = pair.compared()
    assert (code, "is not the key in delegation.token.secret.key.file" in said) == (0, True)
    key = tmp_path / "token.key"
    key.write_text(f"{CANARY}-of-another-cluster\n")
    pair.gateway["delegation.token.secret.key.file"] = str(key)
    assert pair.compared()[0] == 3
    key.write_text(f"{CANARY}\n")
    code, said = pair.compared()
    assert (code, "have the same key of delegation tokens" in said) == (0, True)
