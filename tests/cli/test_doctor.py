"""The findings of ``isrflow doctor``, and when it fails."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bus.embedded import EmbeddedBus
from cli import command
from cli import doctor as doctor_command
from cli.errors import Unreachable
from conf.jars import pinned


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ISRFLOW_CACHE", str(tmp_path / "cache"))


def doctor(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, ["doctor", *arguments])
    return result.exit_code, result.output


def test_doctor_shows_what_is_there_and_how_to_get_the_rest(tmp_path: Path) -> None:
    code, said = doctor("--bus", str(tmp_path / "bus.db"))
    assert code == 0
    assert "ok      java" in said
    assert "-       bus" in said
    assert "0 of 4 jars, for a bus on Kafka: run 'isrflow doctor --fetch spark-kafka'" in said


def test_doctor_finds_the_bus(tmp_path: Path) -> None:
    EmbeddedBus(tmp_path / "bus.db").close()
    assert f"sqlite:{tmp_path / 'bus.db'}" in doctor("--bus", str(tmp_path / "bus.db"), "spark-kafka")[1]


def test_a_jar_with_the_wrong_hash_is_an_error(tmp_path: Path) -> None:
    jar = pinned("spark-kafka")[0]
    jar.path.parent.mkdir(parents=True)
    jar.path.write_bytes(b"")
    code, said = doctor("--bus", str(tmp_path / "bus.db"), "spark-kafka")
    assert code == 3
    assert f"MISSING spark-kafka  wrong hash: {jar.coordinate}" in said
    assert "missing or damaged: spark-kafka" in said


def test_a_set_that_does_not_exist_is_wrong_use() -> None:
    assert doctor("kafka")[0] == 2


def test_a_bus_on_kafka_needs_its_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> None:
        raise Unreachable("no answer")

    monkeypatch.setattr(doctor_command, "existing_bus", nowhere)
    code, said = doctor("--bus", "kafka://127.0.0.1:9092")
    assert code == 3
    assert "MISSING spark-kafka   0 of 4 jars, for a bus on Kafka: run 'isrflow doctor --fetch spark-kafka'" in said
    assert "missing or damaged: spark-kafka." in said
