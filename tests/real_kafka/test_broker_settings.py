"""The gateway knows the settings of brokers as Kafka's own code does."""

import subprocess
from pathlib import Path

import pytest

from brokers.gateways.kraft.broker_lists import broker_lists_in
from conf.jars import fetch
from conf.java import java_home
from conf.kafka_versions import KAFKA_VERSIONS, KafkaVersion
from state.features import METADATA_VERSIONS

pytestmark = pytest.mark.cluster
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
