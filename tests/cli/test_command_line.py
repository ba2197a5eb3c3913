"""What all commands share: how they are found, and how they end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Decided
from cli.commands import command
from tests.cli.conftest import Isrflow
from tests.support.decided_bus import DecidedBus
from tests.support.doc_blocks import ROOT
from tests.support.interrupts import sigint_is_heard
from tests.support.waiting import TIMEOUT_S

COMMAND = [sys.executable, "-c", "from cli import main; main()"]


@pytest.mark.parametrize(
    ("mistyped", "nearest"),
    [(["descrbe"], "describe"), (["cluster", "stauts"], "status"), (["publish", "-", "--wiat"], "--wait")],
)
def test_a_mistyped_name_is_answered_with_the_nearest(isrflow: Isrflow, mistyped: list[str], nearest: str) -> None:
    done = isrflow(*mistyped)
    assert done.exit_code == 2
    assert nearest in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["events", "--kind", "brokr_register"], "there is no 'brokr_register'; did you mean 'broker_register'?"),
        (["decisions", "--kind", "leader_isr"], "there is no 'leader_isr'; did you mean 'leader_and_isr'?"),
        (["decisions", "--reason", "leader_fencd"], "there is no 'leader_fencd'; did you mean 'LEADER_FENCED'?"),
        (["doctor", "kafka-brokers"], "there is no 'kafka-brokers'; did you mean 'kafka-broker'?"),
        # Near none of them, so all are listed.
        (["decisions", "--kind", "?"], "'?' is not one of 'leader_and_isr', 'stop_replica', "),
    ],
)
def test_a_mistyped_choice_of_many_is_answered_with_the_nearest(
    isrflow: Isrflow, arguments: list[str], said: str
) -> None:
    done = isrflow(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr.splitlines()[-1]


def test_ctrl_c_ends_with_130(bus: EmbeddedBus) -> None:
    command = [*COMMAND, "decisions", "--follow", "--from", "7", "--bus", str(bus.path)]
    with sigint_is_heard():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        bus.commit(1, 7, [Decided(7, 0, b'{"late":1}')], [])
        # The command has started and follows once it prints this.
        assert process.stdout.readline() == '{"late":1}\n'
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, said) == (130, "\nAborted!\n")


def test_ctrl_c_while_python_imports_ends_with_130(tmp_path: Path) -> None:
    # In place of click, a module that is interrupted.
    (tmp_path / "click.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    with sigint_is_heard():
        done = subprocess.run(
            COMMAND, capture_output=True, text=True, timeout=TIMEOUT_S, env=dict(os.environ, PYTHONPATH=paths)
        )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nAborted!\n")


def test_ctrl_c_while_the_commands_are_listed_ends_with_130(isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object, ctx: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(command), "list_commands", interrupted)
    done = isrflow("--help")
    assert (done.exit_code, done.stderr) == (130, "\nAborted!\n")


def test_a_group_imports_only_the_command_that_is_used(tmp_path: Path) -> None:
    program = (
        "import sys; from cli.commands import command; command(['cluster', 'down', '--help'], standalone_mode=False); "
        "assert 'cli.cluster.down' in sys.modules; assert 'cli.cluster.up' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, timeout=TIMEOUT_S, env=dict(os.environ)
    )


def test_an_option_overrides_the_environment(
    isrflow: Isrflow, bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISRFLOW_BUS", str(bus.path))
    assert isrflow("decisions").exit_code == 0
    for option in (["--set", "bus=sqlite:other.db"], ["--bus", "other.db"]):
        done = isrflow("decisions", *option)
        assert (done.exit_code, "there is no bus at other.db" in done.stderr) == (3, True)


def test_an_unknown_variable_is_refused(isrflow: Isrflow, bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISRFLOW_SHRADS", "4")
    done = isrflow("decisions")
    assert done.exit_code == 2
    assert "ISRFLOW_SHRADS: no setting has this variable; did you mean ISRFLOW_SHARDS?" in done.stderr


@pytest.mark.parametrize("option", ["--bus", "--set"])
def test_a_password_is_never_echoed(isrflow: Isrflow, option: str) -> None:
    for url in ("kafka://user:hunter2@localhost:9092", "sqlite://user:hunter2@host/bus.db"):
        done = isrflow("decisions", option, f"bus={url}" if option == "--set" else url)
        assert done.exit_code in (2, 3)
        assert "hunter2" not in done.stderr
        assert "***" in done.stderr
    for arguments in (["health"], ["topics"], ["run", "--bus", "x.db"], []):
        done = isrflow(*arguments, "kafka://user:hunter2@localhost:9092")
        assert (done.exit_code, "hunter2" in done.stderr) == (2, False)


def test_a_password_in_place_of_a_topic_is_not_echoed(tmp_path: Path, isrflow: Isrflow) -> None:
    bus = DecidedBus(tmp_path / "bus.db")
    bus.take([b'{"kind":"create_topic","time_ms":0,"topic":"orders","assignment":{"0":[1]}}'])
    bus.close()
    arguments = ("kafka://user:hunter2@localhost:9092", "--bus", str(tmp_path / "bus.db"))
    done = isrflow("describe", *arguments)
    assert (done.exit_code, "hunter2" in done.stderr, "***" in done.stderr) == (1, False, True), done.stderr
    for name in ("decisions", "events"):
        assert "hunter2" not in isrflow(name, *arguments).output
