"""The image is what Kafka's own snapshots say, and a record that does not fit is refused."""

from pathlib import Path

import pytest

from brokers.shadow.cluster_image import ClusterImage, MisfitError, Partition
from brokers.shadow.files import read_directory, read_snapshot, snapshots_in
from brokers.shadow.place import opened
from brokers.shadow.source import Batch
from brokers.wire.metadata.record_frame import Record
from tests.brokers.shadow.worlds import BUNDLES, T, U, broker, change, partition, rec, registration

TOPIC = rec("Topic", Name="t", TopicId=T)


def image(*records: Record) -> ClusterImage:
    return ClusterImage(records)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_the_image_is_what_kafkas_snapshots_say(bundle: Path) -> None:
    with opened(bundle) as place:
        # Since Kafka 4.4 a log begins with a snapshot of nothing that has the bootstrap records. The log has them too.
        snapshots = [read_snapshot(file) for file in snapshots_in(place.directory) if file.offset > 0]
        found = list(read_directory(place.directory))
    replayed, left = ClusterImage(), list(snapshots)
    for one in found:
        assert isinstance(one, Batch)
        if left and left[0].offset == one.base_offset:
            told = ClusterImage(left.pop(0).records)
            assert vars(replayed) == vars(told), f"at offset {one.base_offset}"
        for record in one.records:
            replayed.apply(record)
    assert len(snapshots) - len(left) >= 5


def test_naming_a_leader_raises_the_leader_epoch_even_if_it_led_before() -> None:
    base = TOPIC, partition(LeaderEpoch=4, PartitionEpoch=9)
    epochs = [
        (held.leader, held.leader_epoch, held.partition_epoch)
        for last in (change(Isr=[1, 2]), change(Leader=1), change(Leader=2), change(Leader=-1))
        for held in [image(*base, last).partitions[T][0]]
    ]
    assert epochs == [(1, 4, 10), (1, 5, 10), (2, 5, 10), (-1, 5, 10)]


def test_a_change_keeps_what_it_does_not_name() -> None:
    first = partition(AddingReplicas=[3], RemovingReplicas=[1], EligibleLeaderReplicas=[2], LeaderRecoveryState=1)
    held = image(TOPIC, first, change(Isr=[1])).partitions[T][0]
    assert held == Partition((1, 2, 3), (1,), 1, 0, 1, True, (3,), (1,), (), (2,), ())
    after = image(TOPIC, first, change(AddingReplicas=[], RemovingReplicas=[], LeaderRecoveryState=0)).partitions[T][0]
    assert after == Partition((1, 2, 3), (1, 2, 3), 1, 0, 1, False, (), (), (), (2,), ())


@pytest.mark.parametrize(("name", "cleared"), [("t", {T}), ("u", {U}), ("", {T, U}), ("v", set())])
def test_clearing_an_elr_raises_the_partition_epoch_where_there_was_one(name: str, cleared: set[str]) -> None:
    topics = TOPIC, rec("Topic", Name="u", TopicId=U)
    partitions = [
        one
        for topic in (T, U)
        for one in (
            partition(0, topic, EligibleLeaderReplicas=[2]),
            partition(1, topic, LastKnownElr=[3]),
            partition(2, topic),
        )
    ]
    found = image(*topics, *partitions, rec("ClearElr", TopicName=name))
    for topic, held in found.partitions.items():
        assert [one.partition_epoch for one in held.values()] == ([1, 1, 0] if topic in cleared else [0, 0, 0])
        assert any(one.elr or one.last_known_elr for one in held.values()) == (topic not in cleared)


def test_a_removed_topic_takes_its_settings_along() -> None:
    setting = {"ResourceType": 2, "ResourceName": "t", "Name": "retention.ms"}
    found = image(TOPIC, partition(), rec("Config", **setting, Value="5"), rec("RemoveTopic", TopicId=T))
    assert (found.topics, found.partitions, found.settings) == ({}, {}, {})


def test_a_registration_changes_step_by_step() -> None:
    records = [
        broker(1, epoch=7, LogDirs=["LLLLLLLLLLLLLLLLLLLLLA"]),
        registration(1, Fenced=-1),
        registration(1, InControlledShutdown=1),
        registration(1, Fenced=1),
        rec("UnfenceBroker", Id=1),
        rec("FenceBroker", Id=1),
        broker(1, epoch=9),
    ]
    seen = [image(*records[: number + 1]).brokers[1] for number in range(len(records))]
    assert [(one.is_fenced, one.is_shutting_down) for one in seen] == [
        (True, False),
        (False, False),
        (False, True),
        (True, True),
        (False, True),
        (True, True),
        (True, False),
    ]
    assert [one.broker_epoch for one in seen] == [7] * 6 + [9]
    assert image(*records, rec("UnregisterBroker", BrokerId=1)).brokers == {}


@pytest.mark.parametrize(
    "record",
    [
        change(),
        partition(),
        rec("RemoveTopic", TopicId=T),
        registration(1),
        rec("UnregisterBroker", BrokerId=1),
        rec("FenceBroker", Id=1),
        rec("RemoveAccessControlEntry", Id=T),
    ],
    ids=lambda record: record.name,
)
def test_a_record_about_what_is_not_known_is_a_misfit(record: Record) -> None:
    with pytest.raises(MisfitError, match=record.name):
        ClusterImage().apply(record)


def test_secrets_do_not_stay() -> None:
    keys = {"Salt": b"salt-of-alice", "StoredKey": b"key-of-alice", "ServerKey": b"key-of-alice"}
    found = image(
        rec("UserScramCredential", Name="alice", Mechanism=1, Iterations=8192, **keys),
        rec("DelegationToken", TokenId="token-1", Owner="User:alice", Requester="User:alice", Renewers=[]),
    )
    assert "of-alice" not in repr(vars(found))
    assert len(found.others) == 2
