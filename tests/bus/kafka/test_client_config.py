"""The file with which clients of a bus on Kafka connect: what both clients make of it, and errors without secrets."""

from pathlib import Path

import pytest

from bus.interface import BusError
from cli.options import name_client_config
from conf.loader import load
from isrflow.kafka.client_config import VARIABLE, client_config

CANARY = "canary-of-the-bus"
JAAS = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="{CANARY}";'
SASL = "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"


def of(tmp_path: Path, text: str, **environment: str) -> dict[str, str]:
    file = tmp_path / "client.properties"
    file.write_text(text)
    return {VARIABLE: str(file), **environment}


@pytest.mark.parametrize(
    "given",
    [
        f"sasl.username=me\nsasl.password={CANARY}\n",
        f"sasl.jaas.config={JAAS}\n",
        "sasl.username = me\nsasl.password = ${env:SECRET}\n",
        "sasl.username: me\nsasl.password=${file:FOLDER/password}\n",
    ],
)
def test_a_password_comes_from_the_file_or_from_what_it_names(tmp_path: Path, given: str) -> None:
    (tmp_path / "password").write_text(CANARY + "\n")
    (tmp_path / "ca.pem").touch()
    text = f"# a comment\n{SASL}{given}\nssl.truststore.location=FOLDER/ca.pem\n".replace("FOLDER", str(tmp_path))
    config = client_config(of(tmp_path, text, SECRET=CANARY))
    assert config.for_librdkafka() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": CANARY,
        "ssl.ca.location": f"{tmp_path}/ca.pem",
        "ssl.endpoint.identification.algorithm": "https",
    }
    python = config.for_kafka_python()
    assert (python["sasl_plain_username"], python["sasl_plain_password"]) == ("me", CANARY)
    assert (python["security_protocol"], python["ssl_check_hostname"]) == ("SASL_SSL", True)
    assert CANARY not in repr(config) + str(config)


def test_without_a_file_nothing_is_asked_of_kafka() -> None:
    assert client_config({}).for_librdkafka() == {"security.protocol": "PLAINTEXT"}
    assert client_config({}).for_kafka_python() == {"security_protocol": "PLAINTEXT"}


def test_mutual_tls_has_the_key_in_the_keystore(tmp_path: Path) -> None:
    keystore = tmp_path / "me.pem"
    keystore.touch()
    text = f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={keystore}\n"
    config = client_config(of(tmp_path, text + "ssl.endpoint.identification.algorithm=\n"))
    librdkafka = config.for_librdkafka()
    assert librdkafka["ssl.certificate.location"] == librdkafka["ssl.key.location"] == str(keystore)
    assert librdkafka["ssl.endpoint.identification.algorithm"] == "none"
    assert config.for_kafka_python()["ssl_check_hostname"] is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{CANARY}", "line 1: expected key=value"),
        (f"sasl.passwort={CANARY}", "unknown key 'sasl.passwort'"),
        (f"security.protocol={CANARY}", "security.protocol: expected one of PLAINTEXT"),
        (f"sasl.jaas.config={CANARY}", "sasl.jaas.config: expected MODULE"),
        (f'sasl.jaas.config=X required password="{CANARY}";', "sasl.jaas.config: expected MODULE"),
        (f"{SASL}sasl.password={CANARY}", "needs sasl.username"),
        (f"sasl.password=${{env:NONE}}\n# {CANARY}", "sasl.password: the variable NONE is not set"),
        ("sasl.password=${file:/none}", "sasl.password: /none: No such file"),
        ("security.protocol=SSL\nssl.truststore.location=/none", "ssl.truststore.location: /none: No such file"),
        ("security.protocol=SSL\nssl.truststore.location=/", "ssl.truststore.location: /: Is a directory"),
        ("security.protocol=SSL\nssl.keystore.location=/none", "ssl.keystore.location: /none: No such file"),
    ],
)
def test_an_error_names_the_field_and_shows_no_secret(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BusError, match=r"kafka\.client\.config: .*client\.properties: ") as caught:
        client_config(of(tmp_path, text))
    assert message in str(caught.value)
    assert CANARY not in str(caught.value)


def test_the_setting_reaches_the_processes_that_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/another")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "isrflow.toml"
    file.write_text('kafka.client.config = "client.properties"\n')
    name_client_config(load(file))
    import os

    assert os.environ[VARIABLE] == str(tmp_path / "client.properties")
