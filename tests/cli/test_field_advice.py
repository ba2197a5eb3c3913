"""A field that an event does not have is ignored, and publishing says so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from cli.event_lines import ADVICE_MAX
from isrflow.field_advice import advice_about
from tests.cli.conftest import Isrflow
from tests.support.waiting import TIMEOUT_S

COMMAND = [sys.executable, "-P", "-c", "from cli import main; main()"]
SAID = "create_topic has no field 'partitons', so it is ignored; did you mean 'partitions'?"


def topic(**fields: object) -> bytes:
    return json.dumps({"kind": "create_topic", "topic": "t", **fields}).encode()


@pytest.mark.parametrize(
    ("fields", "near"),
    [
        ({"validateOnly": True}, "validate_only"),
        ({"replication-factor": 3}, "replication_factor"),
        ({"timeoutms": 3}, "timeout_ms"),
    ],
)
def test_a_field_like_one_that_is_missing_is_probably_mistyped(fields: dict[str, object], near: str) -> None:
    assert advice_about("create_topic", {"kind", "topic", *fields}).endswith(f"did you mean '{near}'?")


def test_a_file_is_published_and_the_mistyped_fields_are_named(
    isrflow: Isrflow, bus: EmbeddedBus, tmp_path: Path
) -> None:
    (tmp_path / "events.jsonl").write_bytes(topic() + b"\n\n" + topic(partitons=3) + b"\n" + topic(ticket="A-1"))
    for check in ((), ("--check",)):
        done = isrflow("publish", *check, "events.jsonl")
        assert done.exit_code == 0
        mistyped, own = done.stderr.splitlines()
        assert mistyped == f"Line 3: {SAID}"
        assert own.startswith(
            "Line 4: create_topic has no field 'ticket', so it is ignored; its fields are assignment, "
        )
    assert isrflow("publish", "--as-is", "events.jsonl").stderr == ""


def test_a_pipe_is_published_and_the_first_mistyped_fields_are_named(bus: EmbeddedBus) -> None:
    lines = (topic(partitons=3) + b"\n") * (ADVICE_MAX + 2)
    command = [*COMMAND, "publish", "-", "--bus", str(bus.path)]
    done = subprocess.run(command, input=lines, capture_output=True, timeout=TIMEOUT_S, check=True)
    said = done.stderr.decode().splitlines()
    assert said[:ADVICE_MAX] == [f"Line {number}: {SAID}" for number in range(1, ADVICE_MAX + 1)]
    assert said[ADVICE_MAX:] == ["... and 2 more lines with such fields."]
