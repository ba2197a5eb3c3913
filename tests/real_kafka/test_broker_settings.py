"""The gateway knows the settings of brokers as Kafka's own code does."""

import subprocess
from pathlib import Path

import pytest

from brokers.gateways.kraft.broker_lists import broker_lists_in
from conf.jars import fetch
from conf.java import java_home
from conf.kafka_versions import KAFKA_VERSIONS, KafkaVersion
from state import broker_setting_types as types
from state.features import METADATA_VERSIONS

pytestmark = pytest.mark.cluster
TYPES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
# The settings that have another type in some releases than in 4.1.
CHANGED = {
    ("3.9", "group.share.max.size", "SHORT"),
    *(("4.2", name, "LIST") for name in ("advertised.listeners", "controller.listener.names", "early.start.listeners")),
    *(("4.2", name, "LIST") for name in ("listeners", "log.dir", "log.dirs")),
}
OTHER_NAMES = [
    *("leader.replication.throttled.rate", "follower.replication.throttled.rate", "no.such.setting", "super.users"),
    "replica.alter.log.dirs.io.max.bytes.per.second",
    *(f"listener.name.a.{name}" for name in ("ssl.key.password", "max.connections", "num.io.threads", "no.such", "")),
    *(f"listener.name.a.plain.{name}" for name in ("sasl.jaas.config", "sasl.server.max.receive.size")),
    *(f"listener.name.a.plain.{name}" for name in ("connections.max.reauth.ms", "ssl.key.password")),
    *(f"listener.name.a.plain.sasl.{name}" for name in ("login.class", "login.callback.handler.class")),
    *("listener.name.a.plain.sasl.server.callback.handler.class", "listener.name..ssl.key.password", "listener.name.a"),
]
SOURCE = Path(__file__).with_name("BrokerSettings.java")


def told(kafka: KafkaVersion, *names: str) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return the type and default of every setting that Kafka knows, and the type of each of ``names``."""
    command = [str(java_home() / "bin" / "java"), "-cp", ":".join(map(str, fetch(kafka.jars))), str(SOURCE)]
    lines = "".join(f"{name}\n" for name in names)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=True)
    known, _, types = done.stdout.partition("\n\n")
    rows = (line.split("=", 2) for line in known.splitlines())
    return {name: (kind, default) for name, kind, default in rows}, types.splitlines()


@pytest.mark.parametrize("kafka", KAFKA_VERSIONS.values(), ids=KAFKA_VERSIONS)
def test_the_same_settings_are_lists_with_the_same_defaults(kafka: KafkaVersion) -> None:
    known, _ = told(kafka)
    lists = {name: default for name, (kind, default) in known.items() if kind == "LIST"}
    assert lists == broker_lists_in(METADATA_VERSIONS[kafka.release])


@pytest.mark.parametrize("kafka", KAFKA_VERSIONS.values(), ids=KAFKA_VERSIONS)
def test_settings_have_the_same_types(kafka: KafkaVersion) -> None:
    known, others = told(kafka, *OTHER_NAMES)
    assert len(others) == len(OTHER_NAMES)
    every = {name: kind for name, (kind, _) in known.items()} | dict(zip(OTHER_NAMES, others, strict=True))
    ours = {name: TYPES[types.broker_setting_type(name)] for name in every}
    differ = {(kafka.release, name, kind) for name, kind in every.items() if ours[name] != kind}
    assert differ == {one for one in CHANGED if one[0] == kafka.release}
