"""The event log on the command line, and the way back through replay."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Entry
from cli import log_filters
from history import log
from history.envelope import opened
from history.state_at import state_at
from tests.cli.conftest import Isrflow
from tests.support.recorded_bus import RecordedBus
from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-c", "from cli import main; main()"]
EVENTS = 300


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[RecordedBus]:
    """A bus on which the default rules decided a random log."""
    recorded = RecordedBus(tmp_path / "data" / "bus.db", seed=7, count=EVENTS)
    while recorded.decide(40) < EVENTS:
        recorded.bus.keep_snapshot(0)
    yield recorded
    recorded.bus.close()


def said_by(bus: EmbeddedBus, after: int = 0) -> bytes:
    return b"".join(one.body + b"\n" for one in bus.decisions((0, -1), 10**6) if one.seq > after)


def test_the_events_lead_to_the_same_decisions_byte_for_byte(
    isrflow: Isrflow, recorded: RecordedBus, tmp_path: Path
) -> None:
    printed = isrflow("events")
    assert (printed.exit_code, printed.stderr) == (0, "")
    entries = [opened(line.encode()) for line in printed.stdout.splitlines()]
    assert entries == recorded.bus.read(0, EVENTS)
    done = isrflow("replay", "-", "--out", "again.jsonl", "--state", "state.json", text=printed.stdout)
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "again.jsonl").read_bytes() == said_by(recorded.bus)
    view = json.loads((tmp_path / "state.json").read_text())
    assert view == json.loads(json.dumps(state_at(recorded.bus, EVENTS).view()))


def test_the_last_events_are_printed(isrflow: Isrflow, recorded: RecordedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_filters, "SEQS_BACK", 2)
    last = isrflow("events", "--tail", "3")
    assert [opened(line.encode()).seq for line in last.stdout.splitlines()] == [EVENTS - 2, EVENTS - 1, EVENTS]
    of_kind = isrflow("events", "--kind", "broker_register", "--to", "250", "--tail", "2").stdout.splitlines()
    assert of_kind == isrflow("events", "--kind", "broker_register", "--to", "250").stdout.splitlines()[-2:]
    assert len(of_kind) == 2
    recorded.bus.forget(EVENTS)
    assert "Retention has removed events" in isrflow("events", "--tail", "300").stderr
    done = isrflow("events", "--tail", "3", "--snapshot", "before.json")
    assert (done.exit_code, "--from in place of --tail" in done.stderr) == (2, True)


def test_a_part_of_the_log_is_decided_again_from_a_snapshot(
    isrflow: Isrflow, recorded: RecordedBus, tmp_path: Path
) -> None:
    recorded.bus.forget(150)
    later = isrflow("events", "--from", "200", "--snapshot", "before.json")
    assert (later.exit_code, later.stderr) == (0, "")
    done = isrflow("replay", "-", "--from-snapshot", "before.json", "--out", "again.jsonl", text=later.stdout)
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "again.jsonl").read_bytes() == said_by(recorded.bus, after=199)
    whole = isrflow("events", "--from", "180")
    assert (
        isrflow("replay", "-", "--from-snapshot", "before.json", "--out", "-", text=whole.stdout).stdout_bytes
        == (tmp_path / "again.jsonl").read_bytes()
    ), "events that are in the snapshot are passed over"


def test_what_is_no_snapshot_is_refused(isrflow: Isrflow, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}")
    done = isrflow("replay", "-", "--from-snapshot", "no.json", "--out", "-", text="")
    assert done.exit_code == 2
    assert "it is not a snapshot: " in done.stderr and "isrflow events --snapshot FILE" in done.stderr
    assert isrflow("replay", "-", "--from-snapshot", "gone.json", "--out", "-", text="").exit_code == 2


def test_a_state_beyond_reach_is_refused_and_removed_events_are_told(isrflow: Isrflow, recorded: RecordedBus) -> None:
    recorded.bus.forget(150)
    done = isrflow("events", "--from", "150", "--limit", "1")
    assert done.exit_code == 0
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == [151]
    assert "Retention has removed events up to seq 150" in done.stderr
    refused = isrflow("events", "--from", "150", "--snapshot", "s.json")
    assert refused.exit_code == 3
    assert "the oldest one that can is that of seq 160" in refused.stderr


def test_events_that_retention_removes_before_they_are_printed_are_an_error(
    isrflow: Isrflow, recorded: RecordedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PAGE_EVENTS", 100)
    recorded_events = EmbeddedBus.recorded

    def overtaken(bus: EmbeddedBus, after: int, *bounds: int) -> list[Entry]:
        if after == 100:
            recorded.bus.forget(200)
        return recorded_events(bus, after, *bounds)

    monkeypatch.setattr(EmbeddedBus, "recorded", overtaken)
    done = isrflow("events")
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == [*range(1, 101)]
    assert done.exit_code == 3
    assert "retention has removed events up to seq 200 while those after seq 100 were read" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "seqs"),
    [
        (["--from", "3", "--to", "5"], [3, 4, 5]),
        (["--from", "5"], [5, 6]),
        (["--limit", "2"], [1, 2]),
        (["--kind", "controller_started"], [6]),
        (["--topic", "t", "--from", "4"], [4, 5]),
        (["--topic", "u"], []),
        (["--from", "1d", "--to", "0s"], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_filters_choose_the_events(isrflow: Isrflow, bus: EmbeddedBus, arguments: list[str], seqs: list[int]) -> None:
    done = isrflow("events", *arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == seqs


def test_a_whole_log_is_not_told_as_trimmed(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    done = isrflow("events", "--from", "0", "--limit", "1")
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(("start", "end"), [("5", "3"), ("4", "3"), ("0s", "1d"), ("5", "1d"), ("1d", "2d")])
def test_a_range_that_ends_before_it_starts_is_wrong_use(
    isrflow: Isrflow, bus: EmbeddedBus, start: str, end: str
) -> None:
    done = isrflow("events", "--from", start, "--to", end)
    assert (done.exit_code, done.output) == (2, f"Error: --from {start} is after --to {end}.\n")


@pytest.mark.parametrize("arguments", [["--to", "1d"], ["--from", "2d", "--to", "1d"], ["--from", "0", "--to", "0"]])
def test_a_range_without_an_event_is_wrong_use(isrflow: Isrflow, bus: EmbeddedBus, arguments: list[str]) -> None:
    done = isrflow("events", *arguments)
    assert (done.exit_code, done.output) == (2, f"Error: there is no event in the range {' '.join(arguments)}.\n")


@pytest.mark.parametrize("command", [["events", "--from"], ["decisions", "--since"], ["describe", "--at"]])
def test_the_future_is_wrong_use(isrflow: Isrflow, bus: EmbeddedBus, command: list[str]) -> None:
    done = isrflow(*command, "2999-01-01T00:00:00")
    assert done.exit_code == 2
    assert "'2999-01-01T00:00:00' is in the future, of which nothing is known" in done.stderr


def test_an_impossible_time_is_named(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    done = isrflow("events", "--from", "noon")
    assert done.exit_code == 2
    assert "--from: 'noon' is not a moment: expected a seq, a time such as" in done.stderr


def test_text_is_a_sentence_an_event(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    lines = isrflow("events", "--format", "text", "--from", "5").stdout.splitlines()
    assert [line.split("  ", 2)[::2] for line in (line.strip() for line in lines)] == [
        ["5", "An admin asked to delete the topic t."],
        ["6", "Job test claimed controller epoch 1."],
    ]


def test_follow_goes_on_with_new_events(bus: EmbeddedBus) -> None:
    command = [*COMMAND, "events", "--follow", "--from", "6", "--limit", "2", "--bus", str(bus.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first: Any = json.loads(process.stdout.readline())
        bus.publish([b'{"kind":"delete_topic","time_ms":9,"topic":"late"}'])
        second: Any = json.loads(process.stdout.readline())
        wait_until(lambda: process.poll() is not None, "the command to end")
    assert (first["seq"], second["event"]["topic"], process.returncode) == (6, "late", 0)
