"""The programs of docs/producers.md run as they stand there."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

import isrflow
from bus.kafka.bus import KafkaBus
from tests.support.doc_blocks import blocks_of
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S


@pytest.fixture
def engine() -> Iterator[RulesEngine]:
    engine = RulesEngine()
    yield engine
    engine.stop()


def run(program: str, folder: Path) -> str:
    done = ended(program, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def failed(program: str, folder: Path) -> str:
    done = ended(program, folder)
    assert done.returncode == 1
    return done.stderr


def ended(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)


def test_the_guides_program_with_the_package_works_on_sqlite(engine: RulesEngine, tmp_path: Path) -> None:
    engine.start(tmp_path / "data" / "bus.db")
    program, _ = blocks_of("producers.md", "python")
    assert run(program, tmp_path) == "5\n"


def plain_program(servers: str, prefix: str) -> str:
    """Return the guide's program with a plain client, on a bus of the test's own."""
    _, program = blocks_of("producers.md", "python")
    assert '"localhost:9092", "isrflow"' in program
    return program.replace('"localhost:9092", "isrflow"', f'"{servers}", "{prefix}"')


@pytest.mark.kafka_bus
def test_the_guides_program_with_plain_kafka_python_works_also_behind_a_block_of_decisions(
    engine: RulesEngine, kafka_servers: str, tmp_path: Path
) -> None:
    prefix = uuid.uuid4().hex[:8]
    url = f"kafka://{kafka_servers}/{prefix}"
    engine.start(url)
    with isrflow.connect(url) as client:
        epoch = client.ask({"kind": "broker_register", "broker": 2, "incarnation": "other"})["broker_epoch"]
        beat = {"kind": "broker_heartbeat", "broker": 2, "broker_epoch": epoch}
        client.ask({**beat, "want_fence": False, "want_shutdown": False})
        large = {"kind": "create_topic", "topic": "large", "partitions": 3_000, "replication_factor": 1}
        assert client.ask(large)["error"] == "NONE"
        # So the guide's topic comes to the guide's broker.
        assert client.ask({"kind": "broker_unregister", "broker": 2})["error"] == "NONE"
    assert min(first_bytes_of_decisions(kafka_servers, prefix)) < b" ", "there is a block"
    assert run(plain_program(kafka_servers, prefix), tmp_path) == "1 [1]\n"
    bus = KafkaBus(url, create=False)
    assert bus.offsets_position() == 1
    # The guide's program puts its report where a bus puts reports on the same replica, and under the same key.
    bus.publish([b'{"kind":"log_end_offset","topic":"orders","partition":0,"broker":1}'])
    assert keys_of_reports(kafka_servers, prefix, bus.offsets_partitions) == [(b"orders-0-1", b"orders-0-1")]
    bus.close()


@pytest.mark.kafka_bus
def test_the_guides_program_says_that_no_engine_runs(kafka_servers: str, tmp_path: Path) -> None:
    prefix = uuid.uuid4().hex[:8]
    program = plain_program(kafka_servers, prefix).replace("20_000", "500")
    assert failed(program, tmp_path) == "there is no bus yet: start the engine with 'isrflow run'\n"
    KafkaBus(f"kafka://{kafka_servers}/{prefix}").close()
    assert failed(program, tmp_path) == "no decision came in 20 s: is an engine running on this bus?\n"


def first_bytes_of_decisions(servers: str, prefix: str) -> set[bytes]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": prefix})
    consumer.assign([TopicPartition(f"{prefix}.decisions", 0, 0)])
    found = set()
    while (message := consumer.poll(5)) is not None:
        found.add((message.value() or b"")[:1])
    consumer.close()
    return found


def keys_of_reports(servers: str, prefix: str, partitions: int) -> list[tuple[bytes | None, ...]]:
    """Return the keys of the reports in each partition that has any."""
    found: dict[int, list[bytes | None]] = {}
    consumer = Consumer({"bootstrap.servers": servers, "group.id": prefix, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(f"{prefix}.offsets", number, 0) for number in range(partitions)])
    for _ in range(2):
        message = consumer.poll(20)
        assert message is not None
        found.setdefault(message.partition() or 0, []).append(message.key())
    consumer.close()
    return [tuple(keys) for keys in found.values()]
