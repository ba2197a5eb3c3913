"""What commands print on a terminal, and that every command has the formats and the dry run that it must have."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from tests.cli.test_examples import ALL, found_at
from tests.cli.worked_cluster import started
from tests.support.interrupts import sigint_is_heard
from tests.support.waiting import TIMEOUT_S

COMMAND = [sys.executable, "-P", "-c", "from cli import main; main()"]
# They print no table: what runs until it is stopped, events that go in, files, and a demo.
WITHOUT_FORMAT = {
    "gateway kraft",
    "gateway zookeeper",
    "shadow run",
    "shadow serve",
    "config import",
    "run",
    "publish",
    "replay",
    "reshard",
    "demo",
    "schema",
    "cluster up",
    "cluster adopt",
    "cluster down",
    "cluster hand-back",
    "cluster rebuild",
}
CHANGE = {
    *("topics create", "topics delete", "topics alter", "topics add-partitions", "partitions transfer-leadership"),
    *("brokers fence", "brokers unregister", "reassign execute", "reassign cancel", "elect"),
    "level raise",
}


def options_of(path: tuple[str, ...]) -> set[str]:
    return {option for parameter in found_at(path).params for option in parameter.opts}


LEAVES = [path for path in ALL if not isinstance(found_at(path), click.Group)]


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_that_shows_something_prints_json(path: tuple[str, ...]) -> None:
    assert ("--format" in options_of(path)) == (" ".join(path) not in WITHOUT_FORMAT)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_that_changes_something_has_a_dry_run(path: tuple[str, ...]) -> None:
    assert ("--dry-run" in options_of(path)) == (" ".join(path) in CHANGE)


def on_terminal(folder: Path, *arguments: str, until: bytes, stop: bool = False) -> tuple[int, bytes]:
    """Run a command on a terminal until it has printed ``until``, and return its exit code and its output."""
    terminal, its = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    streams = {"stdin": its, "stdout": its, "stderr": its}
    with sigint_is_heard():
        process = subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment, **streams)  # type: ignore[call-overload]
    os.close(its)
    try:
        said = printed(terminal, until)
        if stop:
            process.send_signal(signal.SIGINT)
        said += printed(terminal)
        code = process.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        os.close(terminal)
    return code, said


def printed(terminal: int, until: bytes | None = None) -> bytes:
    """Read what is printed on a terminal up to ``until``, or to the end."""
    said, deadline = b"", time.monotonic() + TIMEOUT_S
    while until is None or until not in said:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing came after {said!r}"
        try:
            said += os.read(terminal, 65_536)
        except OSError:
            break  # The last writer has closed it.
    return said


def test_a_terminal_gets_colours_a_live_view_and_progress(tmp_path: Path) -> None:
    engine = started(tmp_path)
    try:
        code, said = on_terminal(tmp_path, "brokers", "list", until=b"fenced")
        assert (code, b"\x1b[1m" in said) == (0, True)
        code, said = on_terminal(tmp_path, "top", until=b"Latest decisions", stop=True)
        assert code == 130
        assert b"unhealthy" in said
        (tmp_path / "events.jsonl").write_text('{"kind":"delete_topic","time_ms":1,"topic":"orders"}\n' * 3)
        code, said = on_terminal(tmp_path, "publish", "events.jsonl", until=b"3/3")
        assert (code, b"publishing" in said) == (0, True)
    finally:
        engine.stop()
