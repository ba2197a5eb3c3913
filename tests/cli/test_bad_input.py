"""Any wrong input and any broken output leads to one line that says what is wrong, and to the exit code of its kind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.support.decided_bus import DecidedBus
from tests.support.waiting import TIMEOUT_S

COMMAND = [sys.executable, "-P", "-c", "from cli import main; main()"]
# It begins once its output has no reader.
LATER = [sys.executable, "-P", "-c", "import sys; from cli import main; sys.stdin.read(); main()"]
# Writes down where the standard streams lead once a command runs, and how the log would be written.
STREAMS = """
import os, sys
import cli, cli.commands, conf.logs
def command(**_):
    with open("streams.txt", "w") as noted:
        streams = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
        print(*streams, conf.logs.is_json("auto"), file=noted)
cli.commands.command = command
cli.main()
"""
REBUILD = ["cluster", "rebuild", "--log", "log", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAA", "--from", "."]
STATE = {"seq": 1, "brokers": [], "topics": [{"topic": "t"}], "partitions": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["topics", "delete", "orders", "--bus", ""], "--bus is empty: name a bus, or leave the option out."),
        (["describe", "--bus", "foo://x"], "Error: --bus foo://x: bus: expected sqlite:PATH or kafka://"),
        (["whatif", "--bus", "foo://x"], "Error: --bus foo://x: bus: expected sqlite:PATH or kafka://"),
        (["cluster", "adopt", "--bus", "foo://x"], "Error: --bus foo://x: bus: expected sqlite:PATH or kafka://"),
        (["cluster", "adopt", "--bus", ""], "--bus is empty: name a bus, or leave the option out."),
        ([*REBUILD, "--bus", "foo://x"], "Error: --bus foo://x: bus: expected sqlite:PATH or kafka://"),
        (["cluster", "up", "--bus", "foo://x"], "Error: --bus foo://x: bus: expected sqlite:PATH or kafka://"),
        (["topics", "create", "t", "--config", "a"], "Invalid value for '--config': expected KEY=VALUE, got 'a'"),
        (["topics", "create", "t", "--config", "=1"], "Invalid value for '--config': expected KEY=VALUE, got '=1'"),
        (["topics", "alter", "t", "--config", "a=1", "--config", "a=2"], "'--config': a is given twice"),
        (["cluster", "up", "--set", "a"], "Invalid value for '--set': expected KEY=VALUE, got 'a'"),
        (["decisions", "--from", "9" * 20], "is not in the range 0<=x<=9223372036854775807."),
        (["partitions", "explain", "a\udcff-0"], "'a\\udcff' is not UTF-8."),
        (["topics", "create", "a\udcff", "--partitions", "1", "--dry-run"], "'a\\udcff' is not UTF-8."),
    ],
)
def test_what_cannot_be_meant_is_wrong_use(isrflow: Isrflow, bus: EmbeddedBus, arguments: list[str], said: str) -> None:
    done = isrflow(*arguments)
    assert done.exit_code == 2, done.output
    assert said in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "state",
    [
        json.dumps(STATE | {"partitions": [{"topic": "other", "partition": 0}]}).encode(),
        json.dumps(STATE | {"topics": [{"topic": ["a"]}]}).encode(),
        b'{"seq":1,"brokers":[],"topics":[{"topic":"\xff"}],"partitions":[]}',
    ],
    ids=["a partition of no topic", "a list for a name", "not UTF-8"],
)
def test_a_file_that_is_no_state_is_refused(isrflow: Isrflow, tmp_path: Path, state: bytes) -> None:
    (tmp_path / "state.json").write_bytes(state)
    for command in ("cat", "tree"):
        done = isrflow("state", command, "--state", "state.json")
        assert done.exit_code == 2, done.output
        assert "state.json is not a state: expected what 'isrflow replay --state' writes" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["describe", "--format", "json"],
        ["topics", "list", "--format", "json"],
        ["topics", "list"],
        ["events"],
        ["decisions"],
        ["demo"],
        ["describe"],
        ["history"],
        ["health"],
        ["state", "tree"],
        ["schema", "events"],
        ["replay", "events.jsonl", "--out", "-"],
        ["topics", "create", "late", "--dry-run"],
        ["--help"],
        ["topics", "--help"],
        ["--version"],
        # Nothing comes that it could print.
        ["decisions", "--follow", "--from", "1000"],
        ["events", "--follow", "--from", "1000"],
    ],
    ids=" ".join,
)
def test_closed_output_is_said_on_standard_error(bus: EmbeddedBus, tmp_path: Path, arguments: list[str]) -> None:
    closed = ["sh", "-c", 'exec "$0" "$@" >&-', *COMMAND, *arguments]
    (tmp_path / "events.jsonl").write_text("{}")
    environment = os.environ | {"ISRFLOW_BUS": str(bus.path)}
    done = subprocess.run(closed, cwd=tmp_path, env=environment, capture_output=True, timeout=TIMEOUT_S, text=True)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "Error: standard output is closed, so nothing can be printed."


def test_an_engine_prints_nothing_and_needs_no_output(tmp_path: Path) -> None:
    closed = ["sh", "-c", 'exec "$0" "$@" >&-', *COMMAND, "run", "--set", "metrics.token.file=gone"]
    done = subprocess.run(closed, cwd=tmp_path, capture_output=True, timeout=TIMEOUT_S, text=True)
    # It came as far as what is wrong with the settings.
    assert (done.returncode, done.stderr) == (2, "Error: metrics.token.file: gone: No such file or directory\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["publish", "events.jsonl"],
        ["topics", "delete", "orders"],
        ["brokers", "fence", "1"],
        ["reshard", "--set", "shards=4"],
        ["cluster", "up", "--dir", "cluster"],
    ],
    ids=" ".join,
)
def test_nothing_is_changed_if_the_output_is_closed(bus: EmbeddedBus, tmp_path: Path, arguments: list[str]) -> None:
    """Otherwise it would be changed twice, if somebody ran the command again after the error."""
    (tmp_path / "events.jsonl").write_text('{"kind":"delete_topic","topic":"orders"}')
    last = bus.last_seq()
    closed = ["sh", "-c", 'exec "$0" "$@" >&-', *COMMAND, *arguments]
    environment = os.environ | {"ISRFLOW_BUS": str(bus.path)}
    done = subprocess.run(closed, cwd=tmp_path, env=environment, capture_output=True, timeout=TIMEOUT_S, text=True)
    assert (done.returncode, done.stderr) == (3, "Error: standard output is closed, so nothing can be printed.\n")
    assert (bus.last_seq(), (tmp_path / "cluster").exists()) == (last, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["describe"],
        ["describe", "--format", "json"],
        ["topics", "--help"],
        ["--help"],
        # Nothing comes that it could print.
        ["decisions", "--follow", "--from", "1000"],
        ["events", "--follow", "--from", "1000"],
    ],
)
def test_output_without_a_reader_is_no_refusal(bus: EmbeddedBus, arguments: list[str]) -> None:
    settings = {"env": os.environ | {"ISRFLOW_BUS": str(bus.path)}, "stdin": subprocess.PIPE}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*LATER, *arguments], **settings, **pipes) as process:
        process.stdout.close()
        process.stdin.close()
        said = process.stderr.read()
        assert process.wait(TIMEOUT_S) == 0, said
    assert b"Traceback" not in said and b"Exception" not in said


@pytest.mark.parametrize(
    "arguments", [["describe"], ["events"], ["--help"], ["topics", "--help"], ["schema", "events"]], ids=" ".join
)
def test_a_full_disk_under_the_output_is_an_error_in_a_line(bus: EmbeddedBus, arguments: list[str]) -> None:
    environment = os.environ | {"ISRFLOW_BUS": str(bus.path)}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], env=environment, stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT_S, text=True
        )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (3, "Error: No space left on device")
    assert "Traceback" not in done.stderr


def test_characters_that_the_terminal_does_not_have_are_escaped(tmp_path: Path) -> None:
    bus = DecidedBus(tmp_path / "bus.db")
    bus.take(
        [json.dumps({"kind": "broker_register", "time_ms": 0, "broker": 1, "incarnation": "a", "rack": "東"}).encode()]
    )
    bus.close()
    command = [*COMMAND, "brokers", "list", "--bus", str(tmp_path / "bus.db")]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    assert b"\\u6771" in done.stdout


@pytest.mark.parametrize("arguments", [["publish", "-"], ["replay", "-"], ["whatif", "--add-event", "-"]])
def test_closed_input_is_an_error_in_a_line(arguments: list[str]) -> None:
    closed = ["sh", "-c", 'exec "$0" "$@" <&-', *COMMAND, *arguments]
    done = subprocess.run(closed, capture_output=True, timeout=TIMEOUT_S, text=True)
    assert done.returncode == 2
    assert "standard input is closed" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """A JVM or a library that prints would write into it."""
    closed = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', sys.executable, "-P", "-c", STREAMS]
    assert subprocess.run(closed, cwd=tmp_path, timeout=TIMEOUT_S).returncode == 0
    assert (tmp_path / "streams.txt").read_text() == "/dev/null /dev/null /dev/null True\n"
