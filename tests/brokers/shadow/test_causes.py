"""Records that come in one batch are cut into the operations of Kafka's controller, each with its cause."""

from collections.abc import Callable
from typing import Any

import pytest

from brokers.shadow.source import UNKNOWN_RECORD, Snapshot
from brokers.wire.metadata.record_frame import Record
from tests.brokers.shadow.worlds import (
    NO_OP,
    WORLD,
    T,
    U,
    batch,
    broker,
    change,
    operations,
    partition,
    rec,
    registration,
    short,
)

FENCE_1, FENCE_2 = registration(1, Fenced=1), registration(2, Fenced=1)
LOSES_1 = change(0, Isr=[2, 3], Leader=2), change(1, Isr=[2, 3])
LOSES_2 = change(0, Isr=[1, 3]), change(1, Isr=[3, 1], Leader=3)


def told(*records: Record, world: list[Record] = WORLD, **given: Any) -> list[str]:
    """Return the operations that records are cut into, if they come in one batch and the world is as given."""
    return [short(one) for one in operations(Snapshot(100, 1, 0, tuple(world)), batch(100, *records), **given)[1:]]


CASES: list[tuple[str, list[Record], list[str]]] = [
    (
        "a broker that led something is fenced",
        [*LOSES_1, FENCE_1],
        ["100-102 session_expired certain by 1 t-0,t-1"],
    ),
    (
        "a broker that led nothing is fenced",
        [change(0, Isr=[1, 2]), change(1, Isr=[2, 1]), registration(3, Fenced=1)],
        ["100-102 session_or_shutdown open by 3 t-0,t-1"],
    ),
    (
        "the old record of a fence",
        [*LOSES_1, rec("FenceBroker", Id=1)],
        ["100-102 session_expired certain by 1 t-0,t-1"],
    ),
    (
        "two brokers are fenced in one batch",
        [*LOSES_1, FENCE_1, change(1, Isr=[3], Leader=3), FENCE_2],
        ["100-102 session_expired certain by 1 t-0,t-1", "103-104 session_expired certain by 2 t-1"],
    ),
    (
        "a leader's request just before a fence is not a part of it",
        [change(1, Isr=[2, 3]), change(0, Isr=[2, 3], Leader=2), FENCE_1],
        ["100-102 session_expired certain by 1 t-1,t-0"],
    ),
    (
        "another broker leaves an ISR just before a fence",
        [change(1, Isr=[2, 1]), change(0, Isr=[2, 3], Leader=2), FENCE_1],
        ["100-100 isr_shrunk certain by 2 t-1", "101-102 session_expired certain by 1 t-0"],
    ),
    (
        "a broker shuts down, and is fenced",
        [registration(1, InControlledShutdown=1), *LOSES_1, NO_OP, FENCE_1],
        ["100-102 controlled_shutdown certain by 1 t-0,t-1", "104-104 shutdown_complete likely by 1"],
    ),
    (
        "a broker that stopped is fenced again",
        [*LOSES_1, FENCE_1, FENCE_1],
        ["100-102 session_expired certain by 1 t-0,t-1", "103-103 stopped_session_ended certain by 1"],
    ),
    (
        "the last replica in sync is lost, and comes back",
        [change(0, Isr=[1]), change(0, Leader=-1), FENCE_1, registration(1, Fenced=-1), change(0, Leader=1)],
        [
            "100-100 isr_shrunk certain by 1 t-0",
            "101-102 session_expired certain by 1 t-0",
            "103-104 broker_ready certain by 1 t-0",
        ],
    ),
    (
        "the old record of a return, and then a request of another leader",
        [rec("UnfenceBroker", Id=1), change(1, Isr=[2, 3])],
        ["100-100 broker_ready certain by 1", "101-101 isr_shrunk certain by 2 t-1"],
    ),
    (
        "a broker registers for the first time",
        [broker(4, epoch=100)],
        ["100-100 broker_registered certain by 4"],
    ),
    (
        "a broker starts again after a clean stop",
        [broker(1, epoch=100, incarnation="BBBBBBBBBBBBBBBBBBBBBA")],
        ["100-100 broker_registered certain by 1"],
    ),
    (
        "a broker starts again after an unclean stop",
        [
            change(1, Isr=[2, 3], EligibleLeaderReplicas=[1]),
            change(1, EligibleLeaderReplicas=[]),
            broker(1, epoch=101, incarnation="BBBBBBBBBBBBBBBBBBBBBA"),
        ],
        ["100-100 isr_shrunk certain by 2 t-1", "101-102 unclean_restart certain by 1 t-1"],
    ),
    (
        "an admin unregisters a broker",
        [change(0, Isr=[1, 2]), rec("UnregisterBroker", BrokerId=3)],
        ["100-101 broker_unregistered certain by 3 t-0"],
    ),
    (
        "a log directory fails",
        [change(0, Isr=[2, 3], Leader=2), registration(1, LogDirs=["LLLLLLLLLLLLLLLLLLLLLA"])],
        ["100-101 directory_failed certain by 1 t-0"],
    ),
    (
        "a log directory is cordoned",
        [change(0, Isr=[2, 3]), registration(1, CordonedLogDirs=["LLLLLLLLLLLLLLLLLLLLLA"])],
        ["100-100 isr_shrunk certain by 1 t-0", "101-101 directories_cordoned certain by 1"],
    ),
    (
        "a broker is ready, and has no cordoned directories",
        [registration(1, Fenced=-1), registration(1, CordonedLogDirs=[]), change(0, Isr=[2, 3])],
        ["100-100 broker_ready certain by 1", "102-102 isr_shrunk certain by 1 t-0"],
    ),
    ("a replica is placed", [change(0, Directories=[T, T, T])], ["100-100 replica_placed certain t-0"]),
    (
        "two leaders shrink ISRs",
        [change(0, Isr=[1, 3]), change(1, Isr=[2, 3])],
        ["100-100 isr_shrunk certain by 1 t-0", "101-101 isr_shrunk certain by 2 t-1"],
    ),
    (
        "an ISR shrinks and grows",
        [change(0, Isr=[1, 3]), change(0, Isr=[1, 3, 2])],
        ["100-100 isr_shrunk certain by 1 t-0", "101-101 isr_expanded certain by 1 t-0"],
    ),
    (
        "the preferred replica leads again",
        [change(0, Leader=2), change(0, Leader=1)],
        ["100-100 other open t-0", "101-101 preferred_election likely t-0"],
    ),
    (
        "an election is unclean, and its leader recovers",
        [change(0, Isr=[2], Leader=2, LeaderRecoveryState=1), change(0, LeaderRecoveryState=0)],
        ["100-100 unclean_election certain t-0", "101-101 leader_recovered certain by 2 t-0"],
    ),
    (
        "a move begins and ends",
        [
            change(0, Replicas=[1, 2, 3, 4], AddingReplicas=[4], RemovingReplicas=[3]),
            change(0, Replicas=[1, 2, 4], AddingReplicas=[], RemovingReplicas=[], Isr=[1, 2, 4]),
        ],
        ["100-100 reassignment_began certain t-0", "101-101 reassignment_ended certain by 1 t-0"],
    ),
    (
        "a move is cancelled",
        [
            change(0, Replicas=[1, 2, 3, 4], AddingReplicas=[4], RemovingReplicas=[3]),
            change(0, Replicas=[1, 2, 3], AddingReplicas=[], RemovingReplicas=[]),
        ],
        ["100-100 reassignment_began certain t-0", "101-101 reassignment_cancelled certain t-0"],
    ),
    (
        "a move needs no new replica",
        [change(0, Replicas=[3, 2, 1])],
        ["100-100 reassignment_done_at_once certain t-0"],
    ),
    (
        "two topics are created",
        [
            rec("Topic", Name="u", TopicId=U),
            rec("Config", ResourceType=2, ResourceName="u", Name="retention.ms", Value="5"),
            partition(0, U),
            partition(1, U),
            rec("Topic", Name="v", TopicId=T[:-1] + "A"),
            partition(0, T[:-1] + "A"),
        ],
        ["100-103 topic_created certain u-0,u-1", "104-105 topic_created certain v-0"],
    ),
    ("partitions are added", [partition(2), partition(3)], ["100-101 partitions_added certain t-2,t-3"]),
    ("a topic is deleted", [rec("RemoveTopic", TopicId=T)], ["100-100 topic_deleted certain"]),
    (
        "settings change, and clear ELRs",
        [
            change(0, Isr=[1], EligibleLeaderReplicas=[2]),
            rec("Config", ResourceType=2, ResourceName="t", Name="min.insync.replicas", Value="1"),
            rec("ClearElr", TopicName="t"),
            rec("ClearElr", TopicName="t"),
        ],
        [
            "100-100 isr_shrunk certain by 1 t-0",
            "101-101 settings_changed certain",
            "102-103 elr_cleared certain t-0",
        ],
    ),
    (
        "features, ACLs, quotas, and what is not known",
        [
            rec("FeatureLevel", Name="kraft.version", FeatureLevel=1),
            rec("AccessControlEntry", Id=T),
            rec("RemoveAccessControlEntry", Id=T),
            rec("ClientQuota", Entity=[], Key="producer_byte_rate", Value=5.0, Remove=False),
            rec("ProducerIds", BrokerId=1),
            Record(UNKNOWN_RECORD, 0, {"ApiKey": 99, "Bytes": 4}),
            NO_OP,
        ],
        [
            "100-100 feature_changed certain",
            "101-102 access_changed certain",
            "103-103 quotas_changed certain",
            "104-105 other certain",
        ],
    ),
]


@pytest.mark.parametrize(("records", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_records_are_cut_into_operations(records: list[Record], expected: list[str]) -> None:
    assert told(*records) == expected


@pytest.mark.parametrize(
    ("silent_ms", "expected"),
    [
        (None, "session_or_shutdown open"),
        (800, "shutdown_complete likely"),
        (2_200, "session_or_shutdown open"),
        (9_000, "session_expired likely"),
    ],
)
def test_what_was_seen_of_a_brokers_fetches_is_evidence(silent_ms: int | None, expected: str) -> None:
    ask: Callable[[int, int], int | None] = lambda broker, time_ms: silent_ms if broker == 3 else None
    records = change(0, Isr=[1, 2]), registration(3, Fenced=1)
    assert told(*records, silent_ms=ask) == [f"100-101 {expected} by 3 t-0"]


def test_an_operation_tells_of_what_else_it_may_be() -> None:
    [_, one] = operations(Snapshot(100, 1, 0, tuple(WORLD)), batch(100, registration(3, Fenced=1)))
    assert [str(cause) for cause in one.evidence.alternatives] == ["session_expired", "shutdown_complete"]
