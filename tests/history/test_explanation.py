"""A partition is explained after each kind of story: the stories are those of ``tests/scenarios``."""

import os
from pathlib import Path

import msgspec
import pytest

from controller_logic.replay import DecidedLog, decide
from history import about, chain
from history.explanation import explain, json_of, shown_time, text_of
from history.told_decisions import RULES
from state.decisions import LeaderAndIsr, decode
from state.policy import Policy
from tests.scenarios.story import Story, all_stories, parse
from tests.scenarios.telling import scenes
from tests.support.decided_bus import DecidedBus

FOLDER = Path(__file__).parent / "explanations"
STORIES = {story.name: story for story in all_stories()}
# Each story with the partition that it is about.
EXPLAINED = {
    "balance/leaders_come_back": ("t", 0),
    "brokers/bounce": ("t", 0),
    "brokers/unregistered": ("t", 0),
    "config/topic_above_cluster": ("t", 0),
    "controller/takeover": ("t", 0),
    "deletion/created_again": ("t", 0),
    "deletion/deleted": ("t", 0),
    "deletion/waits_for_a_dead_broker": ("t", 0),
    "elections/leader_dies": ("t", 0),
    "elections/nobody_left": ("t", 0),
    "elections/out_of_sync_is_passed_over": ("t", 0),
    "elections/preferred": ("t", 0),
    "elections/preferred_refusals": ("t", 0),
    "eligible/crashed_log_is_complete": ("t", 0),
    "eligible/most_complete_log_leads": ("t", 0),
    "isr/fence_order": ("t", 0),
    "isr/lost_log_dir_of_the_leader": ("t", 0),
    "isr/shrink_and_expand": ("t", 0),
    "isr/stale_broker_epoch": ("t", 0),
    "log_dirs/fails_with_another_wish": ("t", 0),
    "log_dirs/left_behind_by_the_last_in_sync": ("t", 0),
    "log_dirs/left_behind_in_one_of_several": ("t", 2),
    "log_dirs/one_fails": ("t", 0),
    "reassign/cancelled": ("t", 0),
    "reassign/leader_dies_meanwhile": ("t", 0),
    "reassign/leader_is_removed": ("t", 0),
    "shutdown/last_in_sync": ("t", 0),
    "shutdown/leader": ("t", 0),
    "topics/created_while_no_broker_is_active": ("t", 0),
    "topics/more_partitions": ("t", 1),
    "unclean/at_return_of_a_follower": ("t", 0),
    "unclean/at_return_without_a_log": ("t", 0),
    "unclean/by_request": ("t", 0),
    "unclean/by_topic_at_failure": ("t", 0),
}


def decided(path: Path, name: str) -> DecidedBus:
    """Return a bus on which a story has been decided."""
    return decided_on(path, STORIES[name])


def decided_log(path: Path, *commands: str) -> DecidedBus:
    """Return a bus on which the events of some commands have been decided."""
    return decided_on(path, parse("a log", "\n".join(["# A log.", *commands, "----", ""])))


def decided_on(path: Path, story: Story) -> DecidedBus:
    bus = DecidedBus(path)
    for scene in scenes(story):
        if scene.written:
            bus.take([event.raw for event in scene.written])
    return bus


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_story_is_explained(name: str, tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", name)
    explanation = explain(bus.bus, *EXPLAINED[name], bus.bus.decided_seq())
    bus.close()
    assert explanation is not None
    text = "\n".join(text_of(explanation)) + "\n"
    path = FOLDER / f"{name.replace('/', '-')}.txt"
    if os.environ.get("ISRFLOW_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()


def test_every_reason_of_a_partitions_decision_has_a_rule_to_tell() -> None:
    told = set[str]()
    for story in STORIES.values():
        events = [(event.seq, event.raw) for scene in scenes(story) for event in scene.written]
        texts = (body for _, _, body in decide(events, Policy()).decisions)
        told |= {one.reason for one in map(decode, texts) if isinstance(one, LeaderAndIsr)}
    assert told <= set(RULES)
    assert len(told) > 10


def test_an_earlier_seq_shows_the_partition_as_it_was(tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", "elections/nobody_left")
    explanation = explain(bus.bus, "t", 0, 35)
    assert explanation is not None
    assert explanation.summary[0].startswith("t-0 as of seq 35: no leader, ISR 1 of replicas 1,2,3")
    assert explanation.summary[1] == "It has been without a leader since seq 22 (2023-11-14T22:13:29.000Z)."
    bus.close()


def test_a_time_that_no_calendar_has_is_shown_as_a_number() -> None:
    assert shown_time(0) == "1970-01-01T00:00:00.000Z"
    assert shown_time(2**53) == "9007199254740992 ms"


def test_a_topic_that_is_being_deleted_waits_for_no_leader(tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", "deletion/waits_for_a_dead_broker")
    explanation = explain(bus.bus, "t", 0, 24)
    assert explanation is not None
    assert explanation.summary[1:] == ["Its topic is being deleted."]
    bus.close()


def test_a_partition_that_lost_its_leader_before_its_topic_waits_for_no_leader(tmp_path: Path) -> None:
    bus = decided_log(tmp_path / "bus.db", "brokers 1 2", "topic t 1,2 isr=1", "silence 1", "tick 9s", "delete-topic t")
    explanation = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    assert explanation is not None
    assert explanation.summary[0].startswith(f"t-0 as of seq {bus.bus.decided_seq()}: no leader, ISR 1")
    assert explanation.summary[1:] == ["Its topic is being deleted."]
    bus.close()


def test_older_changes_are_left_out_and_said_to_be_there(tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", "isr/shrink_and_expand")
    seq = bus.bus.decided_seq()
    whole = explain(bus.bus, "t", 0, seq)
    short = explain(bus.bus, "t", 0, seq, changes_max=1)
    assert whole is not None and short is not None
    assert short.steps[-1].sentences == whole.steps[-1].sentences, "what came before is known, but not told"
    assert len(short.steps) < len(whole.steps)
    assert "--limit" in short.summary[-1]
    bus.close()


def test_a_change_whose_past_retention_removed_is_not_told_as_an_election(tmp_path: Path) -> None:
    told = ("brokers 1 2 3", "topic t 1,2,3", "silence 1", "tick 9s", "isr-change t-0 isr=2")
    bus = decided_log(tmp_path / "bus.db", *told)
    bus.trim(1)
    explanation = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    assert explanation is not None
    assert "then had leader 2, ISR 2" in explanation.steps[0].sentences[-2]
    assert explanation.steps[0].sentences[-1].startswith("Rule ISR_SHRUNK"), "no election follows"
    bus.close()


def test_a_topic_is_adopted_without_an_election(tmp_path: Path) -> None:
    bus = decided_log(tmp_path / "bus.db", "brokers 1 2 3")
    led = {"replicas": [1, 2, 3], "leader": 2, "leader_epoch": 7, "isr": [1, 2, 3], "partition_epoch": 9}
    rest = {"leader_recovery_state": "RECOVERED", "adding_replicas": [], "removing_replicas": []}
    adopted = {"kind": "adopt_topic", "time_ms": 0, "topic": "t", "topic_id": "TP9lxr6dp7ZsOP5Q0S-ctQ", "config": {}}
    bus.take([msgspec.json.encode(adopted | {"partitions": [led | rest]})])
    explanation = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    assert explanation is not None
    assert explanation.steps[0].sentences[-1].startswith("Rule TOPIC_ADOPTED"), "no election follows"
    bus.close()


def test_what_retention_removed_is_said_to_be_gone(tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", "isr/shrink_and_expand")
    seq = bus.bus.decided_seq()
    bus.trim(1)
    explanation = explain(bus.bus, "t", 0, seq)
    assert explanation is not None
    assert explanation.summary[-1] == f"Its beginning is not known, because decisions go back only to seq {seq}."
    bus.close()


def test_a_refusal_that_comes_again_and_again_is_told_once(tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", "elections/leader_dies")
    bus.take([stale_request(0)] * 3)
    explanation = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    assert explanation is not None
    assert explanation.steps[-1].times == 3
    assert "STALE_BROKER_EPOCH" in explanation.steps[-1].sentences[1]
    bus.close()


def test_a_partition_with_too_many_refusals_to_read_is_explained_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "SEQS_READ_MAX", 3)
    bus = decided(tmp_path / "bus.db", "elections/leader_dies")
    whole = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    bus.take([stale_request(seq) for seq in range(3)])
    explanation = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    assert whole is not None and explanation is not None
    assert explanation.summary[0].split(": ")[1] == whole.summary[0].split(": ")[1], "the leader is still known"
    assert explanation.summary[1].startswith("Older changes were not read")
    assert json_of(explanation)["has_older"] is True
    bus.close()


def stale_request(seq: int) -> bytes:
    """Return a request that a fence refuses."""
    stale = {"kind": "alter_isr", "time_ms": seq, "topic": "t", "partition": 0, "broker": 2, "broker_epoch": 0}
    return msgspec.json.encode(stale | {"leader_epoch": 0, "partition_epoch": 0, "isr": [2]})


def test_what_nothing_is_known_of_is_not_explained(tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", "elections/leader_dies")
    assert explain(bus.bus, "t", 7, 2) is None
    assert explain(bus.bus, "u", 0, bus.bus.decided_seq()) is None
    bus.close()


def test_one_of_many_partitions_of_an_event_is_found_by_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = decided(tmp_path / "bus.db", "elections/many_partitions")
    seq = bus.bus.decided_seq()
    names = {(one.topic, one.partition) for one in _leader_and_isr(bus)}
    assert len(names) > 2
    expected = [explain(bus.bus, *name, seq) for name in sorted(names)]
    monkeypatch.setattr(about, "FEW", 1)
    assert [explain(bus.bus, *name, seq) for name in sorted(names)] == expected
    bus.close()


def _leader_and_isr(bus: DecidedBus) -> list[LeaderAndIsr]:
    found = [decode(one.body) for one in bus.bus.decisions((0, -1), 10_000)]
    return [one for one in found if isinstance(one, LeaderAndIsr)]


def test_json_has_the_events_and_the_decisions_themselves(tmp_path: Path) -> None:
    bus = decided(tmp_path / "bus.db", "elections/leader_dies")
    explanation = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    assert explanation is not None
    told = msgspec.json.decode(msgspec.json.encode(json_of(explanation)))
    assert [step["event"]["kind"] for step in told["steps"][:2]] == ["create_topic", "tick"]
    elected = [one for one in told["steps"][1]["decisions"] if one["kind"] == "leader_and_isr"]
    assert elected[0]["passed_over"] == {"1": "BROKER_FENCED"}
    bus.close()


def test_an_election_by_logs_says_how_many_committed_records_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "eligible/most_complete_log_leads"
    events = [(event.seq, event.raw) for scene in scenes(STORIES[name]) for event in scene.written]
    monkeypatch.setattr("history.explanation.state_at", lambda _, seq: decide(events[:seq], Policy()))
    monkeypatch.setattr(DecidedLog, "topics", lambda self: [self.states[0].topics.get("t")], raising=False)
    bus = decided(tmp_path / "bus.db", name)
    explanation = explain(bus.bus, "t", 0, bus.bus.decided_seq())
    bus.close()
    assert explanation is not None
    told = explanation.steps[-1].sentences[-1]
    assert told == "Lost at least: 1 committed record. The high watermark was 12, and the log of broker 2 ends at 11."
