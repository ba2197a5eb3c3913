"""The decision log on the command line."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Decided
from cli import decisions
from cli.decision_groups import whole_events
from cli.decision_line import text_of
from state.decisions import decode
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import said
from tests.support.decided_bus import DecidedBus
from tests.support.recorded_bus import RecordedBus
from tests.support.waiting import TIMEOUT_S

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
        (["--from", "3", "--topic", "orders"], [(3, 0), (3, 2)]),
        (["--from", "3", "--topic", "orders", "--kind", "high_watermark"], [(3, 1)]),
        (["--tail", "2"], [(5, 1), (5, 2)]),
        (["--tail", "2", "--kind", "answer"], [(4, 2), (5, 2)]),
        (["--tail", "99", "--from", "5"], [(5, 0), (5, 1), (5, 2)]),
        (["--tail", "4", "--limit", "1"], [(4, 2)]),
        (["--since", "1d", "--limit", "1"], [(1, 0)]),
        (["--reason", "TOPIC_CREATED"], []),
    ],
)
def test_filters_choose_the_decisions(
    isrflow: Isrflow, bus: EmbeddedBus, arguments: list[str], places: list[tuple[int, int]]
) -> None:
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
        out, _ = process.communicate(timeout=TIMEOUT_S)
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
        assert process.wait(timeout=TIMEOUT_S) == 0


def test_the_last_decisions_are_found_far_from_the_end(
    isrflow: Isrflow, bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "DECISIONS_PER_READ", 2)
    rare = Decided(10, 0, b'{"kind":"quorum","seq":10,"index":0}')
    bus.commit(1, 900, [rare, *(Decided(seq, 0, b'{"kind":"no_op"}') for seq in range(11, 900))], [])
    assert [d["seq"] for d in lines(isrflow("decisions", "--tail", "1", "--kind", "quorum").stdout)] == [10]
    assert isrflow("decisions", "--tail", "5", "--kind", "quorum").stdout.count("\n") == 1


def test_text_shows_when_each_decision_was_made(isrflow: Isrflow, tmp_path: Path) -> None:
    recorded = RecordedBus(tmp_path / "data" / "bus.db", seed=7, count=200)
    recorded.decide(200)
    recorded.bus.close()
    printed = isrflow("decisions", "--format", "text", "--kind", "leader_and_isr", "--tail", "3").stdout.splitlines()
    assert len(printed) == 3
    assert all(
        re.fullmatch(r" *[0-9]+  [0-9T:.-]+Z  \S+ leader \S+ epoch [0-9]+ isr [0-9,]+( unclean)?  \([A-Z_]+\)", one)
        for one in printed
    )


def test_text_says_why_an_event_was_rejected(isrflow: Isrflow, tmp_path: Path) -> None:
    bus = DecidedBus(tmp_path / "data" / "bus.db")
    bus.take([b'{"kind":"create_topic","time_ms":1,"topic":5}', b'{"kind":"a\\nb","time_ms":1}'])
    bus.close()
    printed = isrflow("decisions", "--format", "text", "--kind", "rejected").stdout.splitlines()
    assert len(printed) == 2
    assert printed[0] == "     1  1970-01-01T00:00:00.000Z  rejected: topic: Expected `str`, got `int`  (MALFORMED)"
    assert "a\\nb" in printed[1]


def test_two_places_to_start_are_refused(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    done = isrflow("decisions", "--from", "1", "--since", "1h")
    assert done.exit_code == 2
    assert "--from and --since both say where to start" in done.stderr


def test_asking_for_removed_decisions_says_that_they_are_gone(isrflow: Isrflow, bus: EmbeddedBus) -> None:
    bus.passed(6)
    bus.forget(3)
    asked = isrflow("decisions", "--from", "1")
    assert [d["seq"] for d in lines(asked.stdout)] == [4, 4, 4, 5, 5, 5]
    assert "The oldest decision that is left is on event 4." in asked.stderr
    assert isrflow("decisions").stderr == isrflow("decisions", "--from", "4").stderr == ""


def test_a_count_of_the_balance_is_told() -> None:
    common = {"contract_version": 1, "seq": 9, "index": 0, "controller_epoch": 1, "caused_by": "9", "time_ms": 1_000}
    counted = {"kind": "imbalance", "reason": "LEADER_BALANCE", "counts": {"1": [2, 3], "2": [0, 4]}}
    said = text_of(decode(json.dumps(common | counted).encode()))
    assert said == "not led by the preferred leader: 2 of 3 of broker 1"


def test_a_group_tells_in_one_line_what_an_event_led_to(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    [answer] = said(isrflow, "brokers", "fence", "1", "--as", "User:bob")
    shown = isrflow("decisions", "--from", str(answer["seq"]), "--limit", "9", "--group").stdout
    [line] = [one for one in shown.splitlines() if one.split()[0] == str(answer["seq"])]
    assert line.split("Z  ", 1)[1] == (
        "broker 1 fenced  (BROKER_ASKED_FENCE); broker_heartbeat done  (REQUEST_DONE): "
        "1 partition without a leader, 1 leader moved, 1 ISR shrank"
    )
    refused = isrflow("decisions", "--group", "--format", "json")
    assert (refused.exit_code, "--group excludes --format json" in refused.stderr) == (2, True)


def test_an_event_whose_decisions_come_in_two_reads_is_one_group() -> None:
    held = [Decided(seq, index, b"") for seq, index in ((1, 0), (2, 0), (2, 1), (2, 2), (3, 0))]
    whole = whole_events(iter([held[:2], held[2:4], [], held[4:]]))
    assert [[(one.seq, one.idx) for one in batch] for batch in whole if batch] == [
        [(1, 0), (2, 0), (2, 1), (2, 2)],
        [(3, 0)],
    ]
