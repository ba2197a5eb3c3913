"""The programs of docs/producers.md run as they stand there."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

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
    (folder / "program.py").write_text(program)
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_guides_program_with_the_package_works_on_sqlite(engine: RulesEngine, tmp_path: Path) -> None:
    engine.start(tmp_path / "data" / "bus.db")
    program, _ = blocks_of("producers.md", "python")
    assert run(program, tmp_path) == "5\n"


@pytest.mark.cluster
def test_the_guides_program_with_plain_kafka_python_works(
    engine: RulesEngine, kafka_servers: str, tmp_path: Path
) -> None:
    prefix = uuid.uuid4().hex[:8]
    engine.start(f"kafka://{kafka_servers}/{prefix}")
    _, program = blocks_of("producers.md", "python")
    assert '"localhost:9092", "isrflow"' in program
    program = program.replace('"localhost:9092", "isrflow"', f'"{kafka_servers}", "{prefix}"')
    assert run(program, tmp_path) == "1 [1]\n"
    bus = KafkaBus(f"kafka://{kafka_servers}/{prefix}", create=False)
    assert bus.offsets_position() == 1
    # The guide's program puts its report where a bus puts reports on the same replica, and under the same key.
    bus.publish([b'{"kind":"log_end_offset","topic":"orders","partition":0,"broker":1}'])
    assert keys_of_reports(kafka_servers, prefix, bus.offsets_partitions) == [(b"orders-0-1", b"orders-0-1")]
    bus.close()


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
