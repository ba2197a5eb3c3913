"""Eligible leader replicas in the metadata log: records of version 2, the feature's level, and what older logs get."""

from typing import Any

from msgspec.structs import replace

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.snapshot import image_of, records_of
from brokers.gateways.kraft.metadata.translate import translate
from brokers.wire.metadata.record_frame import Record, decode_record
from state.decisions import ConfigDecision, EntityDecision
from state.entity import FEATURES
from state.features import ELIGIBLE_VERSION
from tests.brokers.gateways.kraft.decisions import (
    BROKERS,
    EARLIER,
    ID,
    after,
    common,
    config,
    partition,
    quorum,
    records,
    topic,
    whole,
)


def eligible_change(**fields: Any) -> list[Record]:
    return whole([Record("PartitionChangeRecord", 2, {"PartitionId": 0, "TopicId": ID, **fields})])


def level(value: str) -> ConfigDecision:
    in_force = {ELIGIBLE_VERSION: value, "min.insync.replicas": "1"}
    return replace(config("cluster", None, **{ELIGIBLE_VERSION: value}), in_force=in_force)


def test_changes_name_who_is_eligible_and_an_empty_list_says_nobody() -> None:
    shrunk = partition(1, 1, isr=(1,), elr=(2,), last_known_elr=())
    assert records(shrunk) == eligible_change(Leader=1, Isr=[1], EligibleLeaderReplicas=[2])
    offline = partition(2, 2, leader=-1, isr=(), elr=(1, 2), last_known_elr=(1,))
    assert records(offline, earlier=[*EARLIER, shrunk]) == eligible_change(
        Leader=-1, Isr=[], EligibleLeaderReplicas=[1, 2], LastKnownElr=[1]
    )
    elected = partition(3, 3, leader=2, isr=(2,), elr=(1,), last_known_elr=())
    assert records(elected, earlier=[*EARLIER, shrunk, offline]) == eligible_change(
        Leader=2, Isr=[2], EligibleLeaderReplicas=[1], LastKnownElr=[]
    )
    whole_again = partition(3, 4, leader=2, isr=(2, 1))
    assert records(whole_again, earlier=[*EARLIER, shrunk, offline, elected]) == eligible_change(
        Isr=[2, 1], EligibleLeaderReplicas=[]
    )


def test_without_eligible_replicas_records_are_those_of_version_1() -> None:
    assert [record.version for record in records(partition(1, 1, leader=2, isr=(2, 3)))] == [1]


def test_a_change_of_the_eligible_replicas_alone_raises_the_partition_epoch_alone() -> None:
    before = partition(1, 1, isr=(1,), elr=(2,), last_known_elr=())
    [record] = records(partition(1, 2, isr=(1,)), earlier=[*EARLIER, before])
    assert (record.version, record.values["Leader"], record.values["EligibleLeaderReplicas"]) == (2, -2, [])


def test_a_snapshot_restores_them() -> None:
    image = after([*EARLIER, level("1"), partition(1, 1, leader=-1, isr=(), elr=(2, 3), last_known_elr=(1,))])
    restored = image_of(map(decode_record, records_of(image)), image.quorum_epoch)
    assert restored.topics[ID].partitions[0].elr == (2, 3)
    assert restored == image


def test_the_level_is_that_of_the_setting_in_force_and_no_setting_of_brokers() -> None:
    on = records(level("1"))
    assert [(one.name, one.values.get("Name"), one.values.get("FeatureLevel")) for one in on] == [
        ("FeatureLevelRecord", ELIGIBLE_VERSION, 1),
        ("ConfigRecord", "min.insync.replicas", None),
    ]
    assert records(level("1"), earlier=[*EARLIER, level("1")]) == []
    [off] = records(level("0"), earlier=[*EARLIER, level("1")])
    assert (off.name, off.values["FeatureLevel"]) == ("FeatureLevelRecord", 0)


def test_a_log_that_begins_while_the_setting_is_on_begins_with_the_level() -> None:
    translated = translate(MetadataImage(), [level("1"), quorum(), *BROKERS, topic(a="1")])
    assert translated.image.features[ELIGIBLE_VERSION] == 1


def test_a_log_of_kafka_3_9_has_neither_level_nor_eligible_replicas() -> None:
    chosen = EntityDecision(**common(), entity_type=FEATURES, names={}, values={"metadata.version": "21"})
    earlier = [chosen, *EARLIER]
    assert [one.name for one in records(level("1"), earlier=earlier)] == ["ConfigRecord"]
    [record] = records(partition(1, 1, isr=(1,), elr=(2,), last_known_elr=()), earlier=earlier)
    assert (record.version, record.values["Isr"]) == (1, [1])
