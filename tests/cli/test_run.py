"""`isrflow run` on the command line: how it ends, and with which message."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bus.interface import BusError
from conf.settings import Settings
from streaming import run
from streaming.job_errors import SupersededError
from streaming.stopping import StopSignals
from tests.cli.conftest import Isrflow
from tests.support.waiting import TIMEOUT_S

COMMAND = [sys.executable, "-c", "from cli import main; main()", "run", "--set", "metrics.port=0"]


def test_wrong_settings_are_reported_before_spark_starts(isrflow: Isrflow) -> None:
    done = isrflow("run", "--set", "broker.session.timeout=1")
    assert done.exit_code == 2
    assert "did you mean 'broker.session.timeout.ms'?" in done.stderr
    assert "pyspark" not in done.stderr


def test_no_directory_is_made_for_a_bus_out_of_a_typo(isrflow: Isrflow, tmp_path: Path) -> None:
    path = tmp_path / "dta" / "bus.db"
    for bus in (f"sqlite:{path}", str(path)):
        done = isrflow("run", "--bus", bus)
        assert (done.exit_code, done.stderr) == (
            3,
            f"Error: bus {path}: there is no directory {path.parent}. Make it, or correct the setting bus.\n",
        )
    assert not path.parent.exists()


@pytest.mark.parametrize("bus", [[], ["--bus", "sqlite:bus.db"], ["--bus", "sqlite:data/other.db"]])
def test_the_first_start_needs_no_preparation(
    isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bus: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    started: list[Settings] = []
    monkeypatch.setattr(run, "run", lambda settings, signals, **_: started.append(settings))
    assert isrflow("run", *bus).exit_code == 0
    assert len(started) == 1


def test_a_superseded_job_ends_with_its_own_exit_code(
    isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def superseded(settings: Settings, signals: StopSignals, *, standby: bool, reshards: bool) -> None:
        assert standby and reshards
        raise SupersededError("another job claimed controller epoch 2")

    monkeypatch.setattr(run, "run", superseded)
    done = isrflow("run", "--standby", "--reshard")
    assert done.exit_code == 4
    assert done.stderr.splitlines()[-1] == "Error: another job claimed controller epoch 2"


def test_in_json_the_last_line_is_json_too(isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    def unreachable(settings: Settings, signals: StopSignals, *, standby: bool, reshards: bool) -> None:
        raise BusError("bus kafka://user:hunter2@host:1/isrflow: no answer")

    monkeypatch.setattr(run, "run", unreachable)
    done = isrflow("run", "--set", "log.format=json")
    assert done.exit_code == 3
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["event"], line["level"], line["exit_code"]) == (
        *("bus kafka://***@host:1/isrflow: no answer", "error"),
        3,
    )


@pytest.mark.spark
def test_without_java_the_message_says_what_to_install(tmp_path: Path) -> None:
    environment = os.environ | {"ISRFLOW_JAVA": str(tmp_path / "none")}
    done = subprocess.run(COMMAND, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 3
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: Spark needs Java 17 or newer (found: ISRFLOW_JAVA=")
    assert "Traceback" not in done.stderr
