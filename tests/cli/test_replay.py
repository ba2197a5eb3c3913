"""Replay on the command line: seqs, settings and output files."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.errors import WrongUse
from cli.replay import entries_of
from tests.cli.conftest import Isrflow
from tests.cli.test_examples import EVENTS

SILENCE = EVENTS + '\n{"kind":"tick","time_ms":5000}\n'


def replayed(isrflow: Isrflow, events: str, *arguments: str) -> list[Any]:
    done = isrflow("replay", "-", "--out", "-", *arguments, text=events)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_line_numbers_are_seqs_and_blank_lines_count() -> None:
    assert [tuple(e)[:2] for e in entries_of([b"a\n", b"\n", b" \n", b"{}\n"])] == [(1, b"a"), (4, b"{}")]


def test_a_lines_own_seq_counts() -> None:
    lines = [b'{"seq":7}\n', b'{"seq":9,"x":1}\n', b"not json\n", b'{"seq":11}']
    assert [entry.seq for entry in entries_of(lines)] == [7, 9, 10, 11]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b'{"seq":7}', b"", b'{"seq":7}'], "line 3: seq 7 follows seq 7"),
        ([b'{"seq":7}', b'{"seq":3}'], "line 2: seq 3 follows seq 7"),
        ([b'{"seq":0}'], "line 1: seq is 0; expected a positive integer"),
        ([b'{"seq":"x"}'], 'line 1: seq is "x"; expected a positive integer'),
        ([b'{"seq":99999999999999999999}'], "line 1: seq is 99999999999999999999"),
        ([b'{"seq":' + b"9" * 5_000 + b"}"], "line 1: seq is 9999"),
    ],
)
def test_seqs_must_rise(lines: list[bytes], said: str) -> None:
    with pytest.raises(WrongUse) as error:
        list(entries_of(lines))
    assert said in error.value.message


def test_the_decisions_and_the_state_are_written(isrflow: Isrflow, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    done = isrflow("replay", "events.jsonl", "--out", "decisions.jsonl", "--state", "state.json")
    assert (done.exit_code, done.output) == (0, "")
    decisions = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert [d["kind"] for d in decisions if d["seq"] == 3] == ["leader_and_isr", "leader_and_isr", "topic", "answer"]
    state = json.loads((tmp_path / "state.json").read_text())
    assert [(p["topic"], p["leader"]) for p in state["partitions"]] == [("orders", 1), ("orders", 1)]


def test_settings_change_the_decisions(isrflow: Isrflow) -> None:
    def fenced(*arguments: str) -> bool:
        return any(d["reason"] == "BROKER_SESSION_EXPIRED" for d in replayed(isrflow, SILENCE, *arguments))

    assert not fenced()
    assert fenced("--set", "broker.session.timeout.ms=1000")


def test_settings_override_those_of_the_log(isrflow: Isrflow) -> None:
    started = {"kind": "controller_started", "time_ms": 1, "controller_id": "a", "controller_epoch": 1, "seq": 1}
    started["settings"] = {"broker.session.timeout.ms": "1000"}
    lines = [json.dumps({"seq": n + 2, **json.loads(line)}) for n, line in enumerate(SILENCE.split()) if line]
    log = "\n".join([json.dumps(started), *lines]).replace('"broker_epoch": 1', '"broker_epoch": 2')
    assert any(d["reason"] == "BROKER_SESSION_EXPIRED" for d in replayed(isrflow, log))
    kept = replayed(isrflow, log, "--set", "broker.session.timeout.ms=60000")
    assert not any(d["reason"] == "BROKER_SESSION_EXPIRED" for d in kept)


def test_a_file_that_cannot_be_written_is_named(isrflow: Isrflow, tmp_path: Path) -> None:
    done = isrflow("replay", "-", "--out", "gone/decisions.jsonl", text=EVENTS)
    assert done.exit_code == 2
    assert done.stderr == "Error: cannot write gone/decisions.jsonl: No such file or directory\n"
    for full in (("--out", "/dev/full"), ("--out", "decisions.jsonl", "--state", "/dev/full")):
        done = isrflow("replay", "-", *full, text=b"{}")
        assert (done.exit_code, done.stderr) == (2, "Error: cannot write /dev/full: No space left on device\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--out", "./events.jsonl"),
        ("--out", "d.jsonl", "--state", "events.jsonl"),
        ("--out", "snapshot.json", "--from-snapshot", "snapshot.json"),
        ("--out", "both", "--state", "both"),
    ],
)
def test_no_file_that_is_read_or_written_is_written_over(
    isrflow: Isrflow, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for name in ("events.jsonl", "snapshot.json"):
        (tmp_path / name).write_text("{}")
    done = isrflow("replay", "events.jsonl", *arguments)
    assert done.exit_code == 2
    assert "would be written over" in done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"events.jsonl": "{}", "snapshot.json": "{}"}


def test_an_empty_log_is_an_empty_cluster(isrflow: Isrflow, tmp_path: Path) -> None:
    assert replayed(isrflow, "", "--state", "state.json") == []
    assert json.loads((tmp_path / "state.json").read_text())["brokers"] == []


def test_facts_recorded_by_the_bus_count(isrflow: Isrflow, tmp_path: Path) -> None:
    claim = {"kind": "controller_started", "time_ms": 1_000, "controller_id": "a"}
    events = [
        claim | {"controller_epoch": 1, "is_claim": True, "entered_ms": 1_000},
        claim | {"controller_epoch": 2**31 - 1, "is_claim": False, "entered_ms": 1_000},
        {"kind": "delete_topic", "topic": "t", "time_ms": 61_001, "entered_ms": 1_000},
        {"kind": "delete_topic", "topic": "t", "time_ms": 61_001},
    ]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    done = isrflow("replay", "events.jsonl", "--out", "-")
    assert [json.loads(line)["reason"] for line in done.stdout.splitlines()] == [
        "UNKNOWN_CLAIM",
        "TIME_AHEAD",
        "REQUEST_REFUSED",
    ]


@pytest.mark.parametrize(("field", "value"), [("entered_ms", '"x"'), ("entered_ms", "-1"), ("is_claim", "1")])
def test_impossible_facts_of_the_bus_are_named(isrflow: Isrflow, tmp_path: Path, field: str, value: str) -> None:
    (tmp_path / "events.jsonl").write_text(f'{{"kind":"tick","time_ms":1,"{field}":{value}}}\n')
    done = isrflow("replay", "events.jsonl", "--out", "-")
    assert done.exit_code == 2
    assert f"line 1: {field} is {value}" in done.stderr
