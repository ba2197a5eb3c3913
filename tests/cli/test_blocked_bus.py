"""A command that waits for a bus behind a foreign open transaction names it, and how to end it. On real Kafka."""

import json
from collections.abc import Iterator

import pytest

import isrflow as package
from tests.cli.conftest import Isrflow
from tests.support.open_transaction import Stranger
from tests.support.rules_engine import RulesEngine

pytestmark = pytest.mark.kafka_bus
REGISTER = {"kind": "broker_register", "broker": 1, "incarnation": "a"}
CREATE = {"kind": "create_topic", "time_ms": 1, "topic": "t", "partitions": 1, "replication_factor": 1}


@pytest.fixture
def blocked(kafka_url: str, kafka_servers: str) -> Iterator[str]:
    """The name of the stranger who blocks the bus at ``kafka_url``, on which an engine decides."""
    engine, stranger = RulesEngine(), Stranger(kafka_servers)
    engine.start(kafka_url)
    with package.connect(kafka_url) as client:
        assert client.ask(REGISTER)["error"] == "NONE"
    stranger.write(f"{kafka_url.rpartition('/')[2]}.events")
    yield stranger.name
    stranger.producer.abort_transaction(20)
    engine.stop()


def test_commands_and_the_package_name_the_transaction_that_keeps_events_from_being_decided(
    blocked: str, kafka_url: str, isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.committed.OLD_AFTER_S", 0)
    monkeypatch.setattr("cli.findings.OLD_AFTER_S", 0)
    topic = f"{kafka_url.rpartition('/')[2]}.events"
    publish = ("publish", "-", "--bus", kafka_url, "--wait", "--timeout-ms", "10")
    told = {
        "health": isrflow("health", "--bus", kafka_url, "--max-age-ms", "1").stdout,
        "describe": isrflow("describe", "--bus", kafka_url).stderr,
        "doctor": isrflow("doctor", "--bus", kafka_url).stdout,
        "publish": isrflow(*publish, text=json.dumps(CREATE)).stderr,
    }
    with package.connect(kafka_url) as client, pytest.raises(package.NoAnswerError) as caught:
        client.ask(REGISTER, timeout_s=0.1)
    told["ask"] = str(caught.value)
    for where, text in told.items():
        flat = " ".join(text.split())
        named = f"events cannot be decided because of an open transaction in {topic}-0 at offset"
        for part in (named, f"transactional.id {blocked!r}", f"--topic {topic} --partition 0 --start-offset"):
            assert part in flat, where
        assert "running" not in flat, where
