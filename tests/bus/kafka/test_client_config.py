"""The file with which clients of a bus on Kafka connect: what both clients make of it, and errors without secrets."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from bus.interface import BusError
from cli.options import name_client_config
from conf.loader import load
from conf.security.authority import Authority
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
    Authority(tmp_path)
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
    keystore = Authority(tmp_path).issue("me")
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


PEM = "PEM with a private key, and its certificate"


@pytest.mark.parametrize(
    ("key", "content", "complaint"),
    [
        ("truststore", "nonsense", "expected PEM with certificates of authorities"),
        ("truststore", "", "expected PEM with certificates of authorities"),
        ("truststore", "key", "expected PEM with certificates of authorities"),
        ("keystore", "nonsense", f"expected {PEM}"),
        ("keystore", "key", f"expected {PEM}"),
        ("keystore", "certificate", f"expected {PEM}"),
        ("keystore", "key other", "its first certificate is not that of its private key"),
        ("keystore", "encrypted certificate", "its private key is encrypted: ssl.key.password is needed"),
        ("keystore", "encrypted certificate wrong", "ssl.key.password does not open its private key"),
    ],
)
def test_an_error_names_the_file_of_tls_and_what_is_expected_in_it(
    tmp_path: Path, key: str, content: str, complaint: str
) -> None:
    parts = parts_of(Authority(tmp_path))
    (tmp_path / "it.pem").write_bytes(b"".join(parts.get(word, word.encode()) for word in content.split()))
    text = f"security.protocol=SSL\nssl.{key}.location={tmp_path}/it.pem\n"
    wrong = f"ssl.key.password={CANARY}-not\n" if "wrong" in content else ""
    with pytest.raises(BusError) as caught:
        client_config(of(tmp_path, text + wrong))
    assert str(caught.value).endswith(f"client.properties: ssl.{key}.location: {tmp_path}/it.pem: {complaint}")
    assert CANARY not in str(caught.value)


def test_a_password_opens_the_key_in_the_keystore(tmp_path: Path) -> None:
    parts = parts_of(Authority(tmp_path))
    (tmp_path / "me.pem").write_bytes(parts["encrypted"] + parts["certificate"])
    text = f"security.protocol=SSL\nssl.keystore.location={tmp_path}/me.pem\nssl.key.password={CANARY}\n"
    assert client_config(of(tmp_path, text)).for_librdkafka()["ssl.key.password"] == CANARY


def parts_of(authority: Authority) -> dict[str, bytes]:
    """Return a key, the same key with the canary as its password, its certificate, and another certificate."""
    key, certificate = halves(authority.issue("me"))
    encryption = BestAvailableEncryption(CANARY.encode())
    encrypted = load_pem_private_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    other = halves(authority.issue("other"))[1]
    return {"encrypted": encrypted, "key": key, "certificate": certificate, "other": other}


def halves(keystore: Path) -> tuple[bytes, bytes]:
    """Return the key and the certificates of a file that has both."""
    key, begin, certificates = keystore.read_bytes().partition(b"-----BEGIN CERTIFICATE")
    return key, begin + certificates


def test_the_setting_reaches_the_processes_that_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/another")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "isrflow.toml"
    file.write_text('kafka.client.config = "client.properties"\n')
    name_client_config(load(file).kafka_client_config)
    import os

    assert os.environ[VARIABLE] == str(tmp_path / "client.properties")
