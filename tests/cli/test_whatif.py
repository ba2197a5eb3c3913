"""What if, on the command line."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.history.test_explanation import decided


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    decided(tmp_path / "bus.db", "elections/leader_dies").close()
    monkeypatch.setenv("ISRFLOW_BUS", str(tmp_path / "bus.db"))
    return tmp_path


def test_other_settings_are_compared(isrflow: Isrflow, told: Path) -> None:
    done = isrflow("whatif", "--set", "broker.session.timeout.ms=60000", "--from", "9", "--to", "25")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("What if broker.session.timeout.ms=60000, from seq 9 through seq 25:\n")
    assert "    - leader 2, ISR 2,3 (LEADER_FENCED)\n    + nothing changed\n" in done.stdout


def test_an_event_is_added_after_the_one_that_it_names(isrflow: Isrflow, told: Path) -> None:
    (told / "more.jsonl").write_text('{"kind":"broker_unregister","time_ms":0,"broker":1,"seq":10}\n')
    done = isrflow("whatif", "--add-event", "more.jsonl", "--format", "json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["added_events"] == 1
    assert [one["seq"] for one in document["elections"] if one["would"]] == [10]


def test_events_that_are_not_decided_yet_are_not_compared(isrflow: Isrflow, told: Path) -> None:
    bus = EmbeddedBus(told / "bus.db")
    undecided = bus.publish([b'{"kind":"broker_unregister","time_ms":0,"broker":1}'])
    bus.close()
    done = isrflow("whatif", "--set", "min.insync.replicas=2", "--to", str(undecided))
    assert done.exit_code == 3
    assert done.stderr == f"Error: seq {undecided} is not decided yet: decisions go through seq {undecided - 1}\n"


def test_a_span_from_a_time_begins_with_the_events_of_that_time(isrflow: Isrflow, told: Path) -> None:
    text = isrflow("events", "--from", "20", "--limit", "1").stdout
    entered_ms = json.loads(text)["entered_ms"]
    time = datetime.fromtimestamp(entered_ms / 1000, UTC).isoformat()
    first = json.loads(isrflow("events", "--from", time, "--limit", "1").stdout)["seq"]
    done = isrflow("whatif", "--set", "min.insync.replicas=2", "--from", time, "--format", "json")
    assert json.loads(done.stdout)["from"] == first <= 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name at least one change"),
        (
            ["--set", "shards=4", "--set", "pages=8"],
            "no rule reads pages, shards, so nothing would be decided otherwise",
        ),
        (["--without-event", "999"], "--without-event 999: there is no such event from 1 through 29"),
        (["--set", "min.insync.replica=2"], "min.insync.replicas"),
        (["--set", "min.insync.replicas=2", "--from", "9", "--to", "3"], "--from 9 is after --to 3"),
        (["--set", "min.insync.replicas=2", "--from", "30"], "there is no event in the range --from 30"),
        (["--add-event", "wrong.jsonl"], "wrong.jsonl, line 1 has no kind"),
        (["--add-event", "late.jsonl"], "late.jsonl, line 2: seq 99 is not from 0 through 29"),
    ],
)
def test_a_mistake_is_named(isrflow: Isrflow, told: Path, arguments: list[str], said: str) -> None:
    (told / "wrong.jsonl").write_text("{}\n")
    (told / "late.jsonl").write_text('\n{"kind":"broker_unregister","time_ms":0,"broker":1,"seq":99}\n')
    done = isrflow("whatif", *arguments)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
