"""The findings of ``isrflow doctor``, and when it fails."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.interface import Page
from bus.kafka import connection
from cli import doctor as doctor_command
from cli.commands import command
from conf.jars import pinned
from state.cluster import Cluster
from state.stored.codec import encode_cluster
from tests.support.another_user import another_user


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ISRFLOW_CACHE", str(tmp_path / "cache"))


def doctor(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, ["doctor", *arguments])
    return result.exit_code, result.output


def test_doctor_shows_what_is_there_and_how_to_get_the_rest(tmp_path: Path) -> None:
    code, said = doctor("--bus", str(tmp_path / "bus.db"))
    assert code == 0
    assert "ok    java" in said
    assert "-     bus" in said
    assert "0 of 1 jar, for shorter batches: run 'isrflow doctor --fetch spark-files'" in said


def test_doctor_finds_the_bus(tmp_path: Path) -> None:
    EmbeddedBus(tmp_path / "bus.db").close()
    assert f"sqlite:{tmp_path / 'bus.db'}" in doctor("--bus", str(tmp_path / "bus.db"), "spark-files")[1]


def test_a_bus_that_cannot_be_read_is_wrong(tmp_path: Path) -> None:
    bus = tmp_path / "bus.db"
    bus.write_bytes(b"this is no database" * 100)
    code, said = doctor("--bus", str(bus), "spark-files")
    assert (code, "WRONG bus " in said, "something is wrong: bus." in said) == (3, True, True)
    bus.unlink()
    EmbeddedBus(bus).close()
    with bus.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 2_000)
    code, said = doctor("--bus", str(bus), "spark-files")
    assert (code, "malformed" in said) == (3, True)


def test_a_folder_that_another_user_closed_is_reported(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with another_user():
        code, said = doctor("--bus", str(closed / "bus.db"), "--set", f"checkpoint.dir={closed}/check/point")
    assert code == 3
    for name in ("checkpoint", "bus file"):
        assert re.search(rf"^WRONG {name} +\S+ cannot be written by this user$", said, re.MULTILINE), said


def test_a_file_in_place_of_a_directory_is_wrong(tmp_path: Path) -> None:
    EmbeddedBus(tmp_path / "file").close()
    for place in ("file", "file/below"):
        code, said = doctor("--bus", str(tmp_path / place), "--set", f"checkpoint.dir={tmp_path / place}")
        assert code == 3
        named = f"{re.escape(str(tmp_path / 'file'))} is a file, but must be a directory"
        assert re.search(rf"^WRONG checkpoint +{named}$", said, re.MULTILINE), said
        assert bool(re.search(rf"^WRONG bus file +{named}$", said, re.MULTILINE)) == (place != "file"), said


def test_a_bus_on_kafka_that_cannot_be_reached_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT_S", 0.5)
    code, said = doctor("--bus", "kafka://127.0.0.1:1", "spark-files")
    assert (code, "WRONG bus " in said) == (3, True)


def test_a_checkpoint_elsewhere_is_not_checked(tmp_path: Path) -> None:
    bus = ("--bus", str(tmp_path / "bus.db"), "spark-files")
    code, said = doctor(*bus, "--set", "checkpoint.dir=hdfs://name:8020/checkpoints")
    assert code == 0
    assert re.search(r"- +checkpoint +hdfs://name:8020/checkpoints was not checked: only Spark reaches it\n", said)
    code, said = doctor(*bus, "--set", f"checkpoint.dir=file://{tmp_path}/some%20place")
    assert re.search(rf"ok +checkpoint +{tmp_path} can be written", said)


def test_what_was_fetched_is_not_among_the_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = pinned("spark-files")[0]
    monkeypatch.setattr(doctor_command, "fetch", lambda name, fetched: fetched(jar))
    words = ["doctor", "spark-files", "--fetch", "--format", "json", "--bus", str(tmp_path / "bus.db")]
    done = CliRunner().invoke(command, words)
    assert {finding["name"] for finding in json.loads(done.stdout)} >= {"versions", "spark-files"}
    assert done.stderr == f"fetched {jar.coordinate}\n"


def test_a_jar_with_the_wrong_hash_is_an_error(tmp_path: Path) -> None:
    jar = pinned("spark-files")[0]
    jar.path.parent.mkdir(parents=True)
    jar.path.write_bytes(b"")
    code, said = doctor("--bus", str(tmp_path / "bus.db"), "spark-files")
    assert code == 3
    assert f"WRONG spark-files  wrong hash: {jar.coordinate}" in said
    assert "something is wrong: spark-files" in said


def test_a_set_that_does_not_exist_is_wrong_use() -> None:
    assert doctor("kafka")[0] == 2


@pytest.mark.parametrize(("skew_ms", "code"), [(0, 0), (60_000, 3), (-60_000, 3)])
def test_a_skewed_clock_is_wrong(tmp_path: Path, skew_ms: int, code: int) -> None:
    entered_ms = now_ms()
    cluster = Cluster(seq=7, clock_ms=entered_ms + skew_ms, clock_entered_ms=entered_ms, controller_epoch=1)
    bus = EmbeddedBus(tmp_path / "bus.db")
    epoch = bus.claim("test", {}, 1).controller_epoch
    bus.commit(epoch, bus.last_seq(), [], [Page(0, -1, encode_cluster(cluster))])
    number = bus.bus_id()
    bus.close()
    found, said = doctor("--bus", str(tmp_path / "bus.db"), "spark-files")
    assert found == code, said
    assert f"{skew_ms} ms ahead of the bus's" in said
    assert re.search(r"ok +engine +the last commit is \d", said)
    assert re.search(rf"ok +bus +sqlite:.*bus.db, number {number}\n", said)


def test_findings_are_json_too(tmp_path: Path) -> None:
    code, said = doctor("--bus", str(tmp_path / "bus.db"), "spark-files", "--format", "json")
    findings = {finding["name"]: finding for finding in json.loads(said)}
    assert code == 0
    assert findings["versions"]["text"].startswith("Python 3.")
    assert findings["checkpoint"]["there"]
    assert not findings["bus"]["needed"]


def test_a_place_that_cannot_be_written_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write everywhere, so the answer of the system is replaced here.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    code, said = doctor("--bus", str(tmp_path / "bus.db"), "spark-files")
    assert code == 3
    assert "something is wrong: checkpoint, bus file." in said


def test_a_cache_that_cannot_be_written_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISRFLOW_CACHE", "/dev/null/cache")
    done = CliRunner().invoke(command, ["doctor", "--format", "json", "spark-files"])
    cache = next(one for one in json.loads(done.stdout) if one["name"] == "cache")
    assert not cache["there"]
    assert "cannot be written: name a folder with ISRFLOW_CACHE" in cache["text"]
