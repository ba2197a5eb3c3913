"""Recorded histories are decided as recorded; CHANGELOG.md notes each difference.

ISRFLOW_REWRITE=1 records the decisions again. Events are never altered.
"""

import contextlib
import os
import re
from pathlib import Path

import msgspec
import pytest

from bus.embedded import EmbeddedBus
from controller_logic.replay import decide
from state import decisions as d
from state import events as e
from state.event_text import decode
from state.policy import Policy
from tests.histories.difference import first_difference
from tests.histories.recorded import FOLDER, History, all_histories, digest_of, digest_of_all, digests_of_events
from tests.support.operators import OperatorCluster

HISTORIES = all_histories()
BYTES_MAX = 3_000_000
DECISIONS_MAX = 100_000
CHANGELOG = FOLDER.parents[1] / "CHANGELOG.md"
TITLE = "### Recorded decisions"
ADVICE = """
If that is meant: record the decisions again with
    ISRFLOW_REWRITE=1 .venv/bin/python -m pytest tests/histories
and say in CHANGELOG.md, below "Recorded decisions", what is decided otherwise, and why."""
every_history = pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)


def by_rules(history: History) -> list[bytes]:
    return [body for _, _, body in decide(history.events, Policy()).decisions]


@every_history
def test_a_recorded_log_is_decided_as_before(history: History) -> None:
    decided = by_rules(history)
    if os.environ.get("ISRFLOW_REWRITE"):
        history.record(decided)
    difference = first_difference(dict(history.events), history.decisions, decided)
    assert difference is None, f"{history.name}: {difference}\n{ADVICE}"


@pytest.mark.parametrize(("history", "batch"), list(zip(HISTORIES, (7, 30, 100) * len(HISTORIES), strict=False)))
def test_operators_in_shards_decide_as_recorded(history: History, batch: int, tmp_path: Path) -> None:
    events = history.events
    with contextlib.closing(EmbeddedBus(tmp_path / "bus.db")) as bus:
        cluster = OperatorCluster(bus)
        for first in range(0, len(events), batch):
            cluster.batch(events[first : first + batch])
        decided = [one.body for one in bus.decisions((0, -1), DECISIONS_MAX)]
    difference = first_difference(dict(events), by_rules(history), decided)
    assert difference is None, f"{history.name}: {difference}"


def test_the_changelog_notes_the_decisions_recorded_last() -> None:
    text = CHANGELOG.read_text("utf-8")
    assert text.count(TITLE) == 1
    notes = re.findall(r"^\* `([0-9a-f]+)`: (.*)", text.partition(TITLE)[2], re.MULTILINE)
    digest = digest_of_all()
    assert notes, f"nothing is noted below {TITLE!r}"
    assert notes[0][0] == digest, (
        f'the recorded decisions are {digest} now: put "* `{digest}`: what is decided otherwise, and why" on top of '
        f'"Recorded decisions" in CHANGELOG.md'
    )
    assert len({noted for noted, _ in notes}) == len(notes), "each note stands for decisions that were recorded again"
    assert all(len(why.split()) > 4 for _, why in notes), "a note says what is decided otherwise, and why"


def test_recorded_events_never_change() -> None:
    now = {history.name: digest_of(raw for _, raw in history.events) for history in HISTORIES}
    assert now == digests_of_events(), "events are never altered: add another history instead"
    files = {f"{history.name}.{what}.xz" for history in HISTORIES for what in ("events", "decisions")}
    assert {path.name for path in FOLDER.glob("*.xz")} == files


def test_every_kind_of_event_and_decision_is_recorded() -> None:
    seen = {type(decode(raw)) for history in HISTORIES for _, raw in history.events}
    assert {*e.AnyEvent.__args__, e.Malformed} - seen == set()
    made = {type(d.decode(body)) for history in HISTORIES for body in history.decisions}
    assert set(d.Decision.__subclasses__()) - made == set()


def test_recorded_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.xz")) < BYTES_MAX


EVENT = {5: b'{"kind":"tick"}'}
OLD = {"kind": "leader_and_isr", "seq": 5, "index": 0, "topic": "t", "leader": 1}


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ([OLD | {"leader": 2}], 'seq 5, index 0\n  event 5: {"kind":"tick"}\n    kind: "leader_and_isr"'),
        ([OLD | {"leader": 2}], "    leader: was 1, is 2"),
        ([OLD | {"unclean": True}], "    unclean: was not there, is true"),
        ([OLD, OLD | {"index": 1}], 'index 1\n  event 5: {"kind":"tick"}\n  was not recorded, and is decided now:'),
        ([], '  was recorded, and is decided no longer:\n    kind: "leader_and_isr"\n    seq: 5'),
        ([dict(reversed(OLD.items()))], "the same fields and values, written in other bytes"),
    ],
)
def test_a_difference_is_shown_field_by_field(now: list[dict[str, object]], told: str) -> None:
    bodies = [msgspec.json.encode(fields) for fields in now]
    assert told in (first_difference(EVENT, [msgspec.json.encode(OLD)], bodies) or "")


def test_equal_decisions_are_no_difference() -> None:
    assert first_difference(EVENT, [msgspec.json.encode(OLD)], [msgspec.json.encode(OLD)]) is None
