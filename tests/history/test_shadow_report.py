"""What a report counts: elections, times without a leader, brokers that went away."""

from typing import Any

from history.shadow_report import ROWS_MAX, Offline, ReportWriter, ShadowReport
from state.observed_events import (
    Cause,
    Certainty,
    Evidence,
    Observed,
    ObservedPartition,
    ObservedTopic,
    Results,
)


def row(number: int = 0, leader: int = 1, **rest: Any) -> ObservedPartition:
    given: dict[str, Any] = {"isr": (leader,) if leader >= 0 else (), "leader_epoch": 0, "partition_epoch": 0}
    return ObservedPartition(topic="t", partition=number, replicas=(1, 2, 3), leader=leader, **given | rest)


def event(at_s: int, cause: Cause, *rows: ObservedPartition, broker: int | None = None, **results: Any) -> Observed:
    return Observed(
        time_ms=at_s * 1_000,
        cluster_id="Q",
        offset=at_s,
        last_offset=at_s,
        epoch=1,
        cause=cause,
        certainty=Certainty.certain,
        evidence=Evidence() if broker is None else Evidence(broker=broker),
        results=Results(partitions=rows, **results),
    )


def report(*events: Observed) -> ShadowReport:
    writer = ReportWriter("Q")
    for one in events:
        writer.take(one)
    return writer.finished()


SEED = event(1, Cause.seed, row(0, 1), row(1, 2))


def offline(one: Offline) -> tuple[int, int, int | None, int, str]:
    return one.partition, one.from_ms, one.to_ms, one.lasted_ms, one.lost_by


def test_a_seed_elects_nobody() -> None:
    found = report(SEED)
    assert (found.elections, found.partitions, found.topics) == ({}, 2, 1)
    assert (found.first_ms, found.last_ms, found.first_offset, found.last_offset) == (1_000, 1_000, 1, 1)


def test_another_leader_is_an_election_by_its_cause() -> None:
    found = report(
        SEED,
        event(2, Cause.session_expired, row(0, 2), row(1, 2)),
        event(3, Cause.preferred_election, row(0, 1)),
        event(4, Cause.gap, row(0, 3)),
    )
    assert found.elections == {"session_expired": 1, "preferred_election": 1}


def test_a_time_without_a_leader_has_a_beginning_and_an_end() -> None:
    found = report(
        SEED,
        event(2, Cause.session_expired, row(0, -1), row(1, -1)),
        event(3, Cause.session_expired, row(0, -1)),
        event(5, Cause.broker_ready, row(0, 2)),
        event(9, Cause.settings_changed),
    )
    assert [offline(one) for one in found.offline] == [
        (1, 2_000, None, 7_000, "session_expired"),
        (0, 2_000, 5_000, 3_000, "session_expired"),
    ]
    assert found.elections == {"broker_ready": 1}


def test_a_deleted_topic_is_not_offline_any_more() -> None:
    deleted = (ObservedTopic(topic="t", topic_id="T"),)
    found = report(
        SEED,
        event(2, Cause.session_expired, row(0, -1)),
        event(3, Cause.topic_deleted, deleted_topics=deleted),
        event(9, Cause.settings_changed),
    )
    assert [offline(one) for one in found.offline] == [(0, 2_000, 3_000, 1_000, "session_expired")]
    assert (found.partitions, found.topics) == (0, 0)


def test_an_unclean_election_is_named_whatever_its_cause() -> None:
    recovering = row(0, 3, leader_recovery_state="RECOVERING")
    found = report(
        SEED,
        event(2, Cause.broker_ready, recovering),
        event(3, Cause.isr_expanded, recovering),
        event(4, Cause.leader_recovered, row(0, 3)),
    )
    assert [(one.offset, one.leader, one.cause) for one in found.unclean] == [(2, 3, "broker_ready")]


def test_brokers_that_went_away_are_counted_by_how() -> None:
    found = report(
        *(event(at, Cause.session_expired, broker=1) for at in (1, 2)),
        event(3, Cause.session_or_shutdown, broker=1),
        event(4, Cause.controlled_shutdown, broker=2),
        event(5, Cause.shutdown_complete, broker=2),
        event(6, Cause.stopped_session_ended, broker=2),
        event(7, Cause.unclean_restart, broker=1),
        event(8, Cause.directory_failed, broker=3),
        event(9, Cause.broker_ready, broker=4),
    )
    counted = {
        number: (one.losses, one.shutdowns, one.unclean_restarts, one.failed_directories)
        for number, one in found.brokers.items()
    }
    assert counted == {1: (3, 0, 1, 0), 2: (0, 1, 0, 0), 3: (0, 0, 0, 1)}


def test_lists_are_bounded_and_counts_are_not() -> None:
    lost = (row(number, -1) for number in range(ROWS_MAX + 5))
    found = report(event(1, Cause.session_expired, *lost))
    assert (found.offline_count, len(found.offline)) == (ROWS_MAX + 5, ROWS_MAX)


def test_a_part_counts_its_rows_and_not_the_operation_again() -> None:
    first = event(2, Cause.session_expired, row(0, 2), broker=1)
    second = Observed(**{name: getattr(first, name) for name in first.__struct_fields__} | {"part": 1, "parts": 2})
    found = report(SEED, first, second, event(3, Cause.session_expired, row(1, 3)))
    assert found.causes == {"seed": 1, "session_expired": 2}
    assert found.brokers[1].losses == 1
