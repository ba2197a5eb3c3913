"""The decision log on the command line."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Decided
from tests.cli.conftest import Isrflow

COMMAND = [sys.executable, "-c", "from cli import main; main()", "decisions"]


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_decisions_come_in_order(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    places = [(d["seq"], d["index"]) for d in lines(isrflow("decisions").stdout)]
    assert places == [(seq, index) for seq in range(1, 6) for index in range(3)]


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["--from", "5"], [(5, 0), (5, 1), (5, 2)]),
        (["--limit", "2"], [(1, 0), (1, 1)]),
        (["--from", "6"], []),
        (["--from", "2", "--kind", "answer", "--limit", "2"], [(2, 2), (3, 2)]),
        (["--from", "3", "--topic", "orders"], [(3, 0), (3, 1), (3, 2)]),
    ],
)
def test_filters(isrflow: Isrflow, bus: EmbeddedBus, arguments: list[str], places: list[tuple[int, int]]) -> None:
    done = isrflow("decisions", *arguments)
    assert done.exit_code == 0
    assert [(d["seq"], d["index"]) for d in lines(done.stdout)] == places


def test_a_missing_bus_is_not_created(isrflow: Isrflow) -> None:
    done = isrflow("decisions", "--bus", "gone.db")
    assert done.exit_code == 3
    assert done.stderr == (
        "Error: there is no bus at gone.db: start the engine with 'isrflow run', or name its bus with --bus PATH.\n"
    )


def test_follow_continues_with_new_decisions(bus: EmbeddedBus) -> None:
    command = [*COMMAND, "--follow", "--from", "7", "--limit", "1", "--bus", str(bus.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        time.sleep(0.5)
        bus.commit(1, 7, [Decided(7, 0, b'{"late":1}')], [])
        out, _ = process.communicate(timeout=10)
    assert (process.returncode, out) == (0, b'{"late":1}\n')


def test_a_reader_that_closes_the_pipe_is_no_error(bus: EmbeddedBus) -> None:
    bodies = [Decided(7, index, b'{"filler":"%s"}' % (b"x" * 1_000)) for index in range(2_000)]
    bus.commit(1, 7, bodies, [])
    command = [*COMMAND, "--bus", str(bus.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=10) == 0
