"""The findings of ``isrflow doctor``, and when it fails."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bus.embedded import EmbeddedBus
from cli import command
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
    assert "0 of 1 jars, for shorter batches: run 'isrflow doctor --fetch spark-files'" in said


def test_doctor_finds_the_bus(tmp_path: Path) -> None:
    EmbeddedBus(tmp_path / "bus.db").close()
    assert f"sqlite:{tmp_path / 'bus.db'}" in doctor("--bus", str(tmp_path / "bus.db"), "spark-files")[1]


def test_a_jar_with_the_wrong_hash_is_an_error(tmp_path: Path) -> None:
    jar = pinned("spark-files")[0]
    jar.path.parent.mkdir(parents=True)
    jar.path.write_bytes(b"")
    code, said = doctor("--bus", str(tmp_path / "bus.db"), "spark-files")
    assert code == 3
    assert f"MISSING spark-files  wrong hash: {jar.coordinate}" in said
    assert "missing or damaged: spark-files" in said


def test_a_set_that_does_not_exist_is_wrong_use() -> None:
    assert doctor("kafka")[0] == 2
