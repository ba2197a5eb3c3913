"""Batches are cut into the operations of Kafka's controller, each with its cause and how sure that is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.shadow.operation import Operation
from brokers.shadow.operations import PIECE_RECORDS, Operations
from brokers.shadow.source import UNKNOWN_RECORD, Batch, Damage, Gap, Read, Snapshot
from brokers.wire.metadata.record_frame import Record
from tests.brokers.shadow.worlds import (
    BUNDLES,
    T,
    U,
    batch,
    broker,
    change,
    partition,
    rec,
    recorded,
    registration,
    steps_of,
)

TOPIC = rec("Topic", Name="t", TopicId=T)
NO_OP = rec("NoOp")
# controller.quorum.append.linger.ms, and some time to get there.
LINGER_MS = 100
# Three live brokers, t-0 that 1 leads, t-1 that 2 leads.
WORLD = [
    *(broker(number, incarnation=f"{number}AAAAAAAAAAAAAAAAAAAAA", fenced=False) for number in (1, 2, 3)),
    TOPIC,
    partition(0),
    partition(1, Replicas=[2, 3, 1], Isr=[2, 3, 1], Leader=2),
]
FENCE_1, FENCE_2 = registration(1, Fenced=1), registration(2, Fenced=1)
LOSES_1 = change(0, Isr=[2, 3], Leader=2), change(1, Isr=[2, 3])
LOSES_2 = change(0, Isr=[1, 3]), change(1, Isr=[3, 1], Leader=3)


def told(*records: Record, world: list[Record] = WORLD, **given: Any) -> list[str]:
    """Return the operations that records are cut into, if they come in one batch and the world is as given."""
    return [short(one) for one in operations(Snapshot(100, 1, 0, tuple(world)), batch(100, *records), **given)[1:]]


def operations(*reads: Read, **given: Any) -> list[Operation]:
    found = Operations(**given)
    return [*(one for read in reads for one in found.take(read)), *found.end()]


def short(one: Operation) -> str:
    partitions = ",".join(f"{row.topic}-{row.partition}" for row in one.results.partitions)
    words = [f"{one.offset}-{one.last_offset}", str(one.cause), str(one.certainty)]
    if isinstance(one.evidence.broker, int):
        words.append(f"by {one.evidence.broker}")
    return " ".join([*words, partitions] if partitions else words)


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
    [(None, "session_or_shutdown open"), (800, "session_or_shutdown open"), (9_000, "session_expired likely")],
)
def test_what_was_seen_of_a_brokers_fetches_is_evidence(silent_ms: int | None, expected: str) -> None:
    ask: Callable[[int, int], int | None] = lambda broker, time_ms: silent_ms if broker == 3 else None
    records = change(0, Isr=[1, 2]), registration(3, Fenced=1)
    assert told(*records, silent_ms=ask) == [f"100-101 {expected} by 3 t-0"]


def test_an_operation_tells_of_what_else_it_may_be() -> None:
    [_, one] = operations(Snapshot(100, 1, 0, tuple(WORLD)), batch(100, registration(3, Fenced=1)))
    assert [str(cause) for cause in one.evidence.alternatives] == ["session_expired", "shutdown_complete"]


def test_a_fence_of_many_partitions_spans_batches() -> None:
    count = PIECE_RECORDS + 500
    world = [*WORLD[:4], *(partition(number) for number in range(count))]
    changes = [change(number, Isr=[2, 3], Leader=2) for number in range(count)]
    reads = [
        Snapshot(1, 1, 0, tuple(world)),
        batch(1, *changes[:PIECE_RECORDS]),
        batch(1 + PIECE_RECORDS, *changes[PIECE_RECORDS:], FENCE_1),
    ]
    _, one = operations(*reads)
    assert (one.offset, one.last_offset, str(one.cause)) == (1, count + 1, "session_expired")
    assert len(one.results.partitions) == count


def test_a_shutdown_of_many_partitions_spans_batches() -> None:
    count = PIECE_RECORDS + 500
    world = [*WORLD[:4], *(partition(number) for number in range(count))]
    changes = [change(number, Isr=[2, 3], Leader=2) for number in range(count)]
    reads = [
        Snapshot(1, 1, 0, tuple(world)),
        batch(1, registration(1, InControlledShutdown=1), *changes[: PIECE_RECORDS - 1]),
        batch(1 + PIECE_RECORDS, *changes[PIECE_RECORDS - 1 :]),
    ]
    _, one = operations(*reads)
    assert (one.offset, one.last_offset, str(one.cause)) == (1, count + 1, "controlled_shutdown")
    assert len(one.results.partitions) == count


def test_a_change_in_an_earlier_batch_is_no_part_of_a_fence() -> None:
    reads = [Snapshot(100, 1, 0, tuple(WORLD)), batch(100, LOSES_1[1]), batch(101, LOSES_1[0], FENCE_1)]
    assert [short(one) for one in operations(*reads)][1:] == [
        "100-100 isr_shrunk certain by 2 t-1",
        "101-102 session_expired certain by 1 t-0",
    ]


def test_the_oldest_state_is_the_seed_and_a_later_snapshot_closes_a_gap() -> None:
    later = [*WORLD[:5], partition(1, Replicas=[2, 3, 1], Isr=[2], Leader=2, PartitionEpoch=2)]
    reads = [
        Snapshot(100, 1, 7_000, tuple(WORLD)),
        Gap(100, 200, "lost"),
        Snapshot(200, 2, 9_000, tuple(later)),
        batch(200, change(0, Isr=[1, 2])),
    ]
    found = operations(*reads)
    assert [short(one) for one in found] == [
        "99-99 seed certain t-0,t-1",
        "199-199 gap certain t-1",
        "200-200 isr_shrunk certain by 1 t-0",
    ]
    seed, gap, _ = found
    assert (len(seed.results.brokers), len(seed.results.topics), seed.time_ms) == (3, 1, 7_000)
    assert (gap.results.brokers, gap.results.topics, gap.epoch, gap.time_ms) == ((), (), 2, 9_000)


def test_after_a_gap_without_a_snapshot_what_does_not_fit_is_noted() -> None:
    cut = Operations()
    reads = [batch(0, *WORLD[:3]), Gap(3, 5, "lost"), batch(5, change(0, Isr=[1]), FENCE_1, registration(9, Fenced=1))]
    found = [one for read in reads for one in cut.take(read)]
    assert [short(one) for one in found][3:] == ["3-4 gap certain", "6-6 session_or_shutdown open by 1"]
    assert [note.offset for note in cut.notes] == [3, 5, 7]


def test_damage_without_a_loss_is_noted() -> None:
    cut = Operations()
    assert list(cut.take(Damage(3, "bytes"))) == []
    assert [(note.offset, note.what) for note in cut.notes] == [(3, "bytes")]


def test_records_of_an_aborted_transaction_change_nothing() -> None:
    records = rec("BeginTransaction"), TOPIC, rec("AbortTransaction"), broker(4, epoch=103)
    assert told(*records, world=[]) == ["103-103 broker_registered certain by 4"]
    cut = Operations()
    assert list(cut.take(batch(5, rec("BeginTransaction"), TOPIC))) == []
    assert list(cut.end()) == []
    assert [note.offset for note in cut.notes] == [5]


def test_another_controller_is_told_with_its_epoch() -> None:
    control = Batch(8, 5, 1_000, True, (Record("LeaderChangeMessage", 0, {"LeaderId": 3}),))
    [one] = operations(control)
    assert one.results.controller is not None
    assert (short(one), one.results.controller.controller, one.results.controller.epoch) == (
        "8-8 controller_changed certain",
        3,
        5,
    )


def test_secrets_reach_no_row() -> None:
    secret = "hunter2"
    settings = [
        rec("Config", ResourceType=kind, ResourceName=name, Name=key, Value=value)
        for kind, name, key, value in (
            (4, "1", "ssl.key.password", secret),
            (4, "", "listener.name.tls.ssl.keystore.password", secret),
            (4, "1", "a.plugin.of.theirs", secret),
            (99, "1", "of.a.newer.kafka", secret),
            (4, "1", "log.cleaner.threads", "2"),
            (2, "t", "retention.ms", "5"),
        )
    ]
    keys = {"Salt": secret.encode(), "StoredKey": secret.encode(), "ServerKey": secret.encode()}
    scram = rec("UserScramCredential", Name="alice", Mechanism=1, Iterations=8192, **keys)
    token = rec("DelegationToken", TokenId=secret, Owner="User:alice", Requester="User:alice", Renewers=[])
    found = operations(Snapshot(100, 1, 0, tuple(WORLD)), batch(100, *settings, scram, token))
    seeded = operations(Snapshot(100, 1, 0, (*WORLD, *settings, scram, token)))
    for one in (found, seeded):
        assert secret not in repr(one)
    assert [row.value for row in found[1].results.settings] == [*["[hidden]"] * 4, "2", "5"]


EXPECTED = {
    "create orders": "topic_created certain orders-0,orders-1,orders-2,orders-3",
    "add partitions": "partitions_added certain brief-2",
    "set topic": "settings_changed certain",
    "set password": "access_changed certain",
    "allow": "access_changed certain",
    "set quota": "quotas_changed certain",
    "suspend 3": "isr_shrunk certain by 1",
    "kill 2": "session_expired certain by 2",
    "elect preferred": "preferred_election likely",
    "stop 3": "controlled_shutdown certain by 3",
    "start 3": "broker_ready certain by 3",
    "reorder pair": "reassignment_done_at_once certain pair-0",
    "move pair to 3": "reassignment_began certain pair-0",
    "cancel the move": "reassignment_cancelled certain pair-0",
    "elect uncleanly": "unclean_election certain frail-0",
    "delete brief": "topic_deleted certain",
    "restart controller": "controller_changed certain",
    "unregister 3": "broker_unregistered certain by 3",
}


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_what_was_done_to_a_stock_cluster_is_told(bundle: Path) -> None:
    found, steps = operations(*recorded(bundle)), steps_of(bundle)
    for step, expected in EXPECTED.items():
        # Records have the time of the first one in their batch.
        begins_ms, ends_ms = steps[step]["began_ms"] - LINGER_MS, steps[step]["ended_ms"]
        within = [one for one in found if begins_ms <= one.time_ms <= ends_ms]
        assert any(expected in short(one) for one in within), (step, [short(one) for one in within])
    assert [short(one) for one in found if one.certainty == "open"] == []
