"""The gateway knows the settings of brokers as Kafka's own code does."""

from pathlib import Path
from typing import NamedTuple

import pytest

from brokers.gateways.kraft.apis.broker_lists import broker_lists_in
from conf.kafka_versions import KAFKA_VERSIONS, KafkaVersion
from state import broker_setting_types as types
from state.features import METADATA_VERSIONS
from tests.real_kafka.kafkas_classes import run_java

pytestmark = pytest.mark.kraft
TYPES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
LISTS_FROM_4_2 = (
    *("advertised.listeners", "controller.listener.names", "early.start.listeners", "listeners", "log.dir"),
    "log.dirs",
)
# The settings that have another type in some releases than in 4.1.
CHANGED = {
    ("3.9", "group.share.max.size", "SHORT"),
    *((release, name, "LIST") for release in ("4.2", "4.3", "4.4") for name in LISTS_FROM_4_2),
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


class Told(NamedTuple):
    """What Kafka says of settings."""

    # The type and default of every setting that it knows.
    known: dict[str, tuple[str, str]]
    # The type of each of ``OTHER_NAMES``.
    others: list[str]


@pytest.fixture(scope="module", params=KAFKA_VERSIONS.values(), ids=KAFKA_VERSIONS)
def kafka(request: pytest.FixtureRequest) -> KafkaVersion:
    """Each version in turn, for all tests."""
    version: KafkaVersion = request.param
    return version


@pytest.fixture(scope="module")
def told(kafka: KafkaVersion) -> Told:
    """What Kafka says of its settings, and of ``OTHER_NAMES``."""
    known, _, others = run_java(SOURCE, lines=OTHER_NAMES, kafka=kafka).partition("\n\n")
    rows = (line.split("=", 2) for line in known.splitlines())
    return Told({name: (kind, default) for name, kind, default in rows}, others.splitlines())


def test_the_same_settings_are_lists_with_the_same_defaults(kafka: KafkaVersion, told: Told) -> None:
    lists = {name: default for name, (kind, default) in told.known.items() if kind == "LIST"}
    assert lists == broker_lists_in(METADATA_VERSIONS[kafka.release])


def test_settings_have_the_same_types(kafka: KafkaVersion, told: Told) -> None:
    assert len(told.others) == len(OTHER_NAMES)
    every = {name: kind for name, (kind, _) in told.known.items()} | dict(zip(OTHER_NAMES, told.others, strict=True))
    ours = {name: TYPES[types.broker_setting_type(name)] for name in every}
    differ = {(kafka.release, name, kind) for name, kind in every.items() if ours[name] != kind}
    assert differ == {one for one in CHANGED if one[0] == kafka.release}
