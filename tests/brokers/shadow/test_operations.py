"""Operations across batches, gaps, transactions and snapshots."""

from brokers.shadow.operations import PIECE_RECORDS, Operations
from brokers.shadow.source import Batch, Damage, Gap, Snapshot
from brokers.wire.metadata.record_frame import Record
from tests.brokers.shadow.worlds import (
    TOPIC,
    WORLD,
    batch,
    broker,
    change,
    operations,
    partition,
    rec,
    registration,
    short,
)

FENCE_1 = registration(1, Fenced=1)
LOSES_1 = change(0, Isr=[2, 3], Leader=2), change(1, Isr=[2, 3])


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
    assert [short(one) for one in operations(batch(100, *records))] == ["103-103 broker_registered certain by 4"]
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
