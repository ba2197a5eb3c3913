"""The same log under other settings and events: what differs, and that the same log gives no difference."""

from collections.abc import Iterator, Sequence

import msgspec
import pytest

from bus.interface import Entry
from controller_logic.replay import decide, first_states
from history.comparison import Comparison, json_of
from history.comparison_text import text_of
from history.what_if import Changes, as_it_was, as_it_would_be
from state.cluster import State
from state.policy import Policy
from tests.histories.recorded import History, all_histories
from tests.scenarios.story import Story, all_stories, parse
from tests.scenarios.telling import scenes

STORIES = {story.name: story for story in all_stories()}
UNCLEAN = Changes({"unclean.leader.election.enable": "true"})


def told(story: Story) -> list[Entry]:
    return [Entry(event.seq, event.raw) for scene in scenes(story) for event in scene.written]


def log_of(*lines: str) -> list[Entry]:
    """Return the events of a story's commands."""
    return told(parse("a log", "# A log.\n" + "\n".join([*lines, "----", ""])))


def compared(entries: Sequence[Entry], changes: Changes, states: list[State] | None = None) -> Comparison:
    def events() -> Iterator[Entry]:
        return iter(entries)

    states = states or first_states(1)
    return Comparison(as_it_was(states, events), as_it_would_be(states, events, changes))


def test_a_setting_that_was_in_force_anyway_changes_nothing_in_any_story() -> None:
    same = Changes({"event.time.ahead.max.ms": "60000"})
    assert [name for name, story in STORIES.items() if not compared(told(story), same).is_same] == []


def test_an_unclean_election_brings_a_partition_online_and_puts_records_at_risk() -> None:
    entries = log_of(
        *("brokers 1 2", "topic t 1,2", "offsets t-0 1=40 2=40", "tick 1s", "isr-change t-0 isr=1"),
        *("offsets t-0 1=100", "tick 1s", "silence 1", "tick 9s", "tick 60s"),
    )
    comparison = compared(entries, UNCLEAN)
    totals = comparison.totals()
    assert totals["elections"] == (0, 1)
    assert totals["unclean_elections"] == (0, 1)
    assert totals["offline_at_the_end"] == (1, 0)
    assert totals["minutes_offline"] == (1.0, 0)
    assert totals["records_at_risk"] == (0, 60)
    assert comparison.leaders() == [(2, 0, 1)]
    assert comparison.offline_ms() == [("t", 60_000, 0)]
    (difference,) = comparison.elections()
    assert [one.leader for one in difference.was] == [-1]
    assert [(one.leader, one.unclean, one.records_at_risk) for one in difference.would] == [(2, True, 60)]


def test_settings_hold_at_once_for_a_partition_that_was_offline_before() -> None:
    entries = log_of("brokers 1 2", "topic t 1,2 isr=1", "silence 1", "tick 9s", "tick 60s")
    half = decide([tuple(entry) for entry in entries[:-10]], Policy())
    comparison = compared(entries[-10:], UNCLEAN, half.states)
    assert comparison.totals()["offline_at_the_end"] == (1, 0)
    assert comparison.totals()["minutes_offline"][1] == 0


def test_a_partition_that_was_added_later_was_not_offline_before() -> None:
    entries = log_of("brokers 1 2", "topic t 1,2", "tick 60s", "create-partitions t 3", "tick 60s")
    totals = compared(entries, UNCLEAN).totals()
    assert totals["minutes_offline"] == (0, 0)


def test_an_added_partition_that_gets_its_leader_later_counts_from_when_it_was_added() -> None:
    entries = log_of(
        *("brokers 1 2 3", "topic t 1", "silence 3", "tick 60s", "create-partitions t 2 3", "tick 60s", "heartbeat 3")
    )
    totals = compared(entries, UNCLEAN).totals()
    assert totals["minutes_offline"][0] == pytest.approx(1, abs=0.1)


def test_without_an_event_what_it_led_to_does_not_come() -> None:
    entries = log_of("brokers 1 2", "topic t 1,2", "shutdown 1")
    last = entries[-1].seq
    comparison = compared(entries, Changes(without={last}))
    assert comparison.totals()["elections"] == (1, 0)
    assert [(name, was and was.leader, would and would.leader) for name, was, would in comparison.partitions()] == [
        (("t", 0), 2, 1)
    ]


def test_an_added_event_leaves_the_seqs_of_all_others_as_they_are() -> None:
    entries = log_of("brokers 1 2", "topic t 1,2", "heartbeat 1", "tick 9s")
    early = next(entry.seq for entry in entries if b"create_topic" in entry.raw)
    raw = b'{"kind":"broker_unregister","time_ms":0,"broker":1}'
    comparison = compared(entries, Changes(added={early: [raw]}))
    assert comparison.totals()["elections"] == (0, 1)
    assert [one.seq for one in comparison.elections()] == [early]
    assert comparison.leaders() == [(1, 1, 0), (2, 0, 1)]


@pytest.mark.parametrize("place", [0, 1, 2, 99], ids=["before all", "with one", "between", "after all"])
def test_an_event_is_added_wherever_its_seq_lies(place: int) -> None:
    """On Kafka seqs are far apart, so a seq within reach is mostly not that of an event."""
    entries = log_of("brokers 1 2", "topic t 1,2", "heartbeat 1", "tick 9s")
    topic = next(nth for nth, entry in enumerate(entries) if b"create_topic" in entry.raw) + 1
    early, late = entries[:topic], [entry._replace(seq=100 * entry.seq) for entry in entries[topic:]]
    raw = b'{"kind":"broker_unregister","time_ms":0,"broker":1}'
    states = decide([tuple(entry) for entry in early], Policy()).states
    seq = {0: early[-1].seq + 1, 1: late[0].seq, 2: late[0].seq + 5, 99: late[-1].seq + 7}[place]
    comparison = compared(late, Changes(added={seq: [raw]}), states)
    assert [(one.seq, [new.leader for new in one.would]) for one in comparison.elections()] == [(seq, [2])]


def test_brokers_that_answer_decisions_of_the_other_way_are_refused_and_counted() -> None:
    entries = log_of(
        "brokers 1 2", "topic t 1,2 isr=1", "silence 1", "tick 9s", "heartbeat 1", "isr-change t-0 isr=1,2"
    )
    comparison = compared(entries, UNCLEAN)
    assert comparison.totals()["refused_isr_changes"] == (0, 1)
    assert "answer decisions that were not made" in text_of(comparison, "title")[-1]


def test_leaders_are_balanced_by_the_counts_of_this_way() -> None:
    entries = told(STORIES["balance/leaders_come_back"])
    comparison = compared(entries, Changes({"auto.leader.rebalance.enable": "false"}))
    assert comparison.totals()["elections"] == (4, 2)
    kept = compared(entries, Changes({"leader.imbalance.per.broker.percentage": "10"}))
    assert kept.is_same


def test_leaders_are_balanced_where_no_count_is_on_record() -> None:
    entries = log_of(
        *("settings auto.leader.rebalance.enable=true leader.imbalance.check.interval.seconds=60", "brokers 1 2"),
        *("topic t 1,2", "restart 1", "isr-change t-0 isr=1,2", "tick 6s", "tick 60s"),
    )
    recorded = [entry for entry in entries if b"leader_imbalance" not in entry.raw]
    assert len(recorded) < len(entries)
    comparison = compared(recorded, Changes({"leader.imbalance.per.broker.percentage": "11"}))
    assert comparison.totals()["elections"] == (1, 2), "the second one brings the leader back"


@pytest.mark.parametrize("history", all_histories(), ids=lambda history: history.name)
def test_a_recorded_history_is_the_same_if_nothing_is_different(history: History) -> None:
    entries = [Entry(seq, raw) for seq, raw in history.events[:300]]
    # There is no such event.
    nothing = Changes(without={2**40})
    assert text_of(compared(entries, nothing), "title") == ["title", "", "Nothing would differ."]


def test_the_text_is_a_diff() -> None:
    entries = log_of("brokers 1 2", "topic t 1,2 isr=1", "silence 1", "tick 9s")
    lines = text_of(compared(entries, UNCLEAN), "What if:")
    assert ["Unclean", "elections", "0", "1", "+1"] in [line.split() for line in lines]
    assert "    - no leader, ISR 1 (LEADER_FENCED)" in lines
    assert "    + leader 2, ISR 2 (UNCLEAN_ELECTION), unclean: 0 records at risk" in lines


def test_large_counts_are_shown_to_the_last_digit() -> None:
    entries = log_of(
        *("brokers 1 2", "topic t 1,2", "offsets t-0 1=40 2=40", "tick 1s", "isr-change t-0 isr=1"),
        *("offsets t-0 1=1234607", "tick 1s", "silence 1", "tick 9s", "tick 60s"),
    )
    lines = [line.split() for line in text_of(compared(entries, UNCLEAN), "What if:")]
    assert ["Records", "at", "risk", "0", "1234567", "+1234567"] in lines
    assert ["Minutes", "offline", "1", "0", "-1"] in lines


def test_json_has_both_ways() -> None:
    entries = log_of("brokers 1 2", "topic t 1,2 isr=1", "silence 1", "tick 9s")
    document = json_of(compared(entries, UNCLEAN), {"set": dict(UNCLEAN.settings)})
    document = msgspec.json.decode(msgspec.json.encode(document))
    assert document["totals"]["unclean_elections"] == {"was": 0, "would": 1}
    assert document["leaders"] == {"2": {"was": 0, "would": 1}}
    assert document["partitions"][0]["would"] == {"leader": 2, "isr": [2], "recovery": "RECOVERING"}
