"""A bus on Kafka that asks for TLS and a password: both clients get in, and no error shows the password."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import bus.kafka.topics as topics
import isrflow
from brokers.launch.kafka.cluster import KafkaCluster, plain_specs
from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.properties import LOOPBACK
from brokers.launch.ports import free_ports
from bus.interface import BusError
from bus.open_bus import open_bus
from conf.security.authority import Authority
from isrflow.kafka.client_config import VARIABLE
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kraft
CANARY = "canary-of-the-real-bus"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def server(tmp_path: Path, authority: Authority) -> Iterator[str]:
    """The address of a Kafka node's listener that asks for TLS and a password."""
    prepare()
    (spec,), (port,) = plain_specs(1), free_ports(1)
    bound = f"PLAINTEXT://{LOOPBACK}:{spec.port},SECURE://{LOOPBACK}:{port}"
    overrides = {
        "listeners": f"{bound},CONTROLLER://{LOOPBACK}:{spec.controller_port}",
        "advertised.listeners": f"{bound},CONTROLLER://{LOOPBACK}:{spec.controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f'{MODULE} required user_isrflow="{CANARY}";',
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(authority.issue("kafka")),
    }
    cluster = KafkaCluster.create(tmp_path / "kafka", [msgspec.structs.replace(spec, overrides=overrides)])
    try:
        cluster.up()
        yield f"{LOOPBACK}:{port}"
    finally:
        cluster.kill()


def config(authority: Authority, file: Path, password: str) -> str:
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f"ssl.truststore.location={authority.certificate_file}\nsasl.username=isrflow\nsasl.password={password}\n"
    )
    return str(file)


def test_a_bus_works_behind_tls_and_a_password(
    server: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, config(authority, tmp_path / "client.properties", CANARY))
    url = f"kafka://{server}/secure"
    event = {"kind": "broker_register", "time_ms": 1_000, "broker": 1, "incarnation": "a"}
    engine = open_bus(url)
    try:
        assert engine.publish([json.dumps(event).encode()])
        assert CANARY not in repr(engine) + str(vars(engine))
        # A user's program, with the other client.
        with isrflow.connect(url) as client:
            client.publish(event | {"broker": 2})
        read = [msgspec.json.decode(entry.raw)["broker"] for entry in engine.read(0, engine.last_seq())]
        assert read == [1, 2]
    finally:
        engine.close()

    monkeypatch.setenv(VARIABLE, config(authority, tmp_path / "wrong.properties", CANARY + "-wrong"))
    monkeypatch.setattr(topics, "REQUEST_TIMEOUT_S", 3.0)
    said: list[str] = []

    def is_refused_by_name() -> bool:
        with pytest.raises(BusError) as caught:
            open_bus(url)
        said.append(str(caught.value))
        return "authentication" in said[-1].lower()

    wait_until(is_refused_by_name, "the reason of the refusal")
    assert CANARY not in str(said)
