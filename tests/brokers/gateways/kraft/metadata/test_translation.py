"""How each kind of decision is written to the metadata log, case by case."""

from typing import Any

import pytest
from msgspec.structs import replace

from brokers.gateways.kraft.log import entries as log_entries
from brokers.gateways.kraft.log.entries import encode_entry
from brokers.gateways.kraft.metadata.draft import MetadataDraft, ReplayError
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.partitions import StaleDecisionError
from brokers.gateways.kraft.metadata.translate import Entry, translate
from brokers.gateways.kraft.metadata.uuids import uuid_of
from brokers.wire.metadata.record_frame import Record
from brokers.wire.record_batch import decode_batches
from state.decisions import (
    Answer,
    AnyDecision,
    HighWatermark,
    ProducerIds,
    StopReplica,
)
from state.features import first_levels
from state.log_directory import MIGRATING
from state.registration import Listener
from tests.brokers.gateways.kraft.decisions import (
    BROKERS,
    DIRECTORIES,
    EARLIER,
    ID,
    MOVED,
    OTHER_ID,
    after,
    broker,
    change,
    common,
    config,
    partition,
    quorum,
    records,
    records_in,
    registration_change,
    settings,
    topic,
    whole,
)

D = DIRECTORIES
CASES: dict[str, tuple[AnyDecision, list[Record]]] = {
    "the leader left": (partition(1, 1, leader=2, isr=(2, 3)), change(Leader=2, Isr=[2, 3])),
    "the leader shrank the ISR": (partition(0, 1, isr=(1, 2)), change(Isr=[1, 2])),
    "the rules shrank the ISR, under the same leader": (partition(1, 1, isr=(1, 2)), change(Leader=1, Isr=[1, 2])),
    "nobody leads": (partition(1, 1, leader=-1, isr=(1,)), change(Leader=-1, Isr=[1])),
    "an unclean election": (
        partition(1, 1, leader=3, isr=(3,), leader_recovery_state="RECOVERING"),
        change(Leader=3, LeaderRecoveryState=1, Isr=[3]),
    ),
    "a reassignment begins": (
        partition(1, 1, replicas=(2, 3, 4, 1), adding_replicas=(4,), removing_replicas=(1,)),
        change(
            Leader=1,
            Replicas=[2, 3, 4, 1],
            Directories=[D[2], D[3], MIGRATING, D[1]],
            RemovingReplicas=[1],
            AddingReplicas=[4],
        ),
    ),
    "the same again": (partition(), []),
    "of a topic that is gone": (partition(7, 7, topic_id=OTHER_ID), []),
    "a broker is fenced": (broker(1, "fenced"), registration_change(Fenced=1)),
    "a broker is about to stop": (broker(1, "controlled_shutdown"), registration_change(InControlledShutdown=1)),
    "a broker may stop": (broker(1, "shutdown_allowed"), registration_change(InControlledShutdown=1)),
    "a broker is unregistered": (
        broker(1, "unregistered"),
        [Record("UnregisterBrokerRecord", 0, {"BrokerId": 1, "BrokerEpoch": 1})],
    ),
    "one nobody knows is unregistered": (broker(4, "unregistered"), []),
    "a topic is being deleted": (topic("deleting"), [Record("RemoveTopicRecord", 0, {"TopicId": ID})]),
    "a topic is deleted, one of whose brokers is away": (
        topic("ineligible"),
        [Record("RemoveTopicRecord", 0, {"TopicId": ID})],
    ),
    "a topic is deleted at once": (topic("deleted"), [Record("RemoveTopicRecord", 0, {"TopicId": ID})]),
    "a topic that went is deleted": (topic("deleted", OTHER_ID), []),
    "a setting is added": (config("topic", "t", a="1", b="2"), settings(2, "t", b="2")),
    "a setting is changed": (config("topic", "t", a="2"), settings(2, "t", a="2")),
    "a setting is removed": (config("topic", "t"), settings(2, "t", a=None)),
    "a setting of a topic that is gone": (config("topic", "u", a="1"), []),
    "a setting of all brokers": (config("cluster", None, a="1"), settings(4, "", a="1")),
    "what is in force goes before what was set": (
        replace(config("cluster", None, a="1", b="1"), in_force={"a": "2", "c": "3"}),
        settings(4, "", a="2", b="1", c="3"),
    ),
    "a setting of a broker": (config("broker", "3", a="1"), settings(4, "3", a="1")),
    "producer ids": (
        ProducerIds(**common(), broker=1, broker_epoch=1, next_producer_id=1_000),
        [Record("ProducerIdsRecord", 0, {"BrokerId": 1, "BrokerEpoch": 1, "NextProducerId": 1_000})],
    ),
    "a high watermark": (
        HighWatermark(**common(), topic="t", partition=0, leader_epoch=0, high_watermark=5),
        [],
    ),
    "a replica stops": (
        StopReplica(**common(), topic="t", topic_id=ID, partition=0, leader_epoch=0, delete=True, to=(1,)),
        [],
    ),
    "an answer": (Answer(**common(), request_id=1, request="delete_topic", error="NONE", message=""), []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_decision_becomes_records(name: str) -> None:
    decision, expected = CASES[name]
    assert records(decision) == whole(expected)


def test_a_new_partition_is_written_whole() -> None:
    (record,) = records(partition(partition=1, leader=2, isr=(2,), replicas=(2, 4)))
    assert record.name == "PartitionRecord"
    assert record.values == {
        "PartitionId": 1,
        "TopicId": ID,
        "Replicas": [2, 4],
        "Isr": [2],
        "RemovingReplicas": [],
        "AddingReplicas": [],
        "Leader": 2,
        "LeaderRecoveryState": 0,
        "LeaderEpoch": 0,
        "PartitionEpoch": 0,
        "Directories": [D[2], MIGRATING],
        "EligibleLeaderReplicas": None,
        "LastKnownElr": None,
    }


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "fields"),
    [(2, 1, {"leader": 2}), (1, 2, {"leader": 2}), (0, 2, {"isr": (1,)}), (0, 1, {"leader": 2}), (0, 0, {"isr": (1,)})],
)
def test_a_full_record_is_written_when_epochs_would_differ(
    leader_epoch: int, partition_epoch: int, fields: dict[str, Any]
) -> None:
    (record,) = records(partition(leader_epoch, partition_epoch, **fields))
    assert record.name == "PartitionRecord"
    assert (record.values["LeaderEpoch"], record.values["PartitionEpoch"]) == (leader_epoch, partition_epoch)


def test_an_older_decision_is_refused() -> None:
    earlier = [*EARLIER[:-1], partition(3, 4)]
    for epochs in ((2, 3), (3, 3)):
        with pytest.raises(StaleDecisionError, match=r"t-0: decision 9 is of partition epoch 3 .* after 4 and 3"):
            records(partition(*epochs), earlier=earlier)
    with pytest.raises(StaleDecisionError, match="decision 9 begins quorum epoch 1 after 1"):
        records(quorum())


def test_fencing_and_the_elections_it_causes_are_one_entry() -> None:
    written = records(partition(1, 1, leader=2, isr=(2, 3)), broker(1, "fenced"))
    assert [record.name for record in written] == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    entry = translate(after(EARLIER), [partition(1, 1, leader=2, isr=(2, 3)), broker(1, "fenced")]).entry
    assert entry is not None
    (batch,) = decode_batches(encode_entry(entry, 50).data)
    assert (batch.base_offset, batch.next_offset, batch.leader_epoch, batch.timestamp_ms) == (50, 52, 1, 1_009)


def test_a_registration_is_written_in_full_when_a_change_record_cannot_express_it() -> None:
    left = [*EARLIER, broker(1, "controlled_shutdown")]
    fenced = after(left), broker(1, "fenced")
    image, entry = translate(fenced[0], [fenced[1]])
    assert entry is not None
    assert records_in(entry) == whole(registration_change(Fenced=1))
    back = translate(image, [broker(1, "active")]).entry
    assert back is not None
    assert [(r.name, r.values["Fenced"], r.values["InControlledShutdown"]) for r in records_in(back)] == [
        ("RegisterBrokerRecord", False, False)
    ]
    (moved,) = records(broker(1, listeners=(Listener("PLAINTEXT", "elsewhere", 1),)))
    assert (moved.name, moved.values["EndPoints"][0]["Host"]) == ("RegisterBrokerRecord", "elsewhere")
    (again,) = records(broker(1, "fenced", broker_epoch=8, incarnation="jjjjjjjjjjjjjjjjjjjjjQ"))
    assert (again.name, again.version, again.values["BrokerEpoch"]) == ("RegisterBrokerRecord", 3, 8)
    assert again.values["LogDirs"] == [D[1]]


def test_listeners_have_only_kafkas_protocols() -> None:
    named = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "QUIC")
    (record,) = records(broker(4, listeners=tuple(Listener(name, "h", 1, name) for name in named)))
    written = [(one["Name"], one["SecurityProtocol"]) for one in record.values["EndPoints"]]
    assert written == [("PLAINTEXT", 0), ("SSL", 1), ("SASL_PLAINTEXT", 2), ("SASL_SSL", 3)]


def test_replicas_follow_their_broker_to_another_directory() -> None:
    registered, moved = records(broker(2, "fenced", broker_epoch=8, log_dirs=(MOVED,)))
    assert registered.name == "RegisterBrokerRecord"
    assert (moved.name, moved.values["Directories"]) == ("PartitionRecord", [D[1], MOVED, D[3]])
    assert (moved.values["LeaderEpoch"], moved.values["PartitionEpoch"]) == (0, 0)
    (kept,) = records(broker(2, "fenced", broker_epoch=8, log_dirs=(MOVED, D[2])))
    assert kept.name == "RegisterBrokerRecord"
    _, unassigned = records(broker(2, "fenced", broker_epoch=8, log_dirs=(MOVED, D[4])))
    assert unassigned.values["Directories"] == [D[1], MIGRATING, D[3]]


def test_a_topic_whose_deletion_waits_for_a_reassignment_stays() -> None:
    moving = {"replicas": (2, 3, 4, 1), "adding_replicas": (4,), "removing_replicas": (1,)}
    earlier = [*EARLIER[:-1], partition(**moving)]
    assert records(topic("ineligible"), earlier=earlier) == []
    # What the same event decides counts.
    again = partition(1, 1, **moving)
    assert [r.name for r in records(topic("ineligible"), again)] == ["PartitionChangeRecord"]
    assert [r.name for r in records(topic("deleting"), partition(1, 1, leader=-1), earlier=earlier)] == [
        "RemoveTopicRecord"
    ]
    for over in (partition(1, 1, leader=-1), partition(1, 1, leader=-1, elr=(2,), directories={1: D[1]})):
        assert records(topic("ineligible"), over, earlier=earlier)[0].name == "RemoveTopicRecord"


def test_a_recreated_topic_starts_without_settings() -> None:
    gone = translate(after(EARLIER), [topic("deleting")]).image
    assert not (gone.topics or gone.topic_ids or gone.configs)
    entry = translate(gone, [topic("created", OTHER_ID, b="2")]).entry
    assert entry is not None
    assert [(r.name, r.values.get("Name")) for r in records_in(entry)] == [("TopicRecord", "t"), ("ConfigRecord", "b")]


def test_nothing_is_written_before_the_quorum_has_a_leader() -> None:
    image, entry = translate(MetadataImage(), BROKERS)
    assert (entry, image.quorum_epoch, len(image.brokers)) == (None, 0, 3)
    image, entry = translate(image, [quorum(voter=-1, epoch=1)])
    assert (entry, image.quorum_epoch) == (None, 0)
    image, entry = translate(image, [quorum(epoch=2), topic()])
    assert entry is not None
    assert (entry.leader_change, entry.quorum_epoch) == ((100, (100, 101)), 2)
    features, others = records_in(entry)[:3], records_in(entry)[3:]
    assert {r.values["Name"]: r.values["FeatureLevel"] for r in features} == first_levels()
    assert features[0].values["Name"] == "metadata.version"
    assert [r.name for r in others] == ["RegisterBrokerRecord"] * 3 + ["TopicRecord"]


def test_a_later_leader_is_announced_alone() -> None:
    entry = translate(after(EARLIER), [quorum(epoch=2, voter=101)]).entry
    assert entry == Entry(9, 1_009, 2, entry.leader_change if entry else None, (), ())
    assert entry is not None
    (batch,) = decode_batches(encode_entry(entry, 7).data)
    assert (batch.control, batch.leader_epoch, batch.records[0][0]) == (True, 2, b"\0\0\0\2")


def test_an_entry_larger_than_a_batch_is_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_entries, "BATCH_BYTES_MAX", 300)
    entry = translate(after(EARLIER), [topic(topic_id=ID), *[partition(partition=n) for n in range(1, 9)]]).entry
    assert entry is not None
    encoded = encode_entry(entry, 10)
    batches = list(decode_batches(encoded.data))
    assert len(batches) > 3
    assert [batch.base_offset for batch in batches[1:]] == [batch.next_offset for batch in batches[:-1]]
    assert encoded.end_offset == batches[-1].next_offset
    names = [record.name for record in log_entries.records_in(encoded.data)]
    assert (names[0], names[-1]) == ("BeginTransactionRecord", "EndTransactionRecord")
    assert names[1:-1] == [record.name for record in records_in(entry)]


@pytest.mark.parametrize(
    "record",
    [
        Record("BrokerRegistrationChangeRecord", 2, {"BrokerId": 7, "BrokerEpoch": 1}),
        Record("BrokerRegistrationChangeRecord", 2, {"BrokerId": 1, "BrokerEpoch": 7}),
        Record("RemoveTopicRecord", 0, {"TopicId": OTHER_ID}),
        Record("PartitionChangeRecord", 1, {"TopicId": ID, "PartitionId": 3}),
        Record("TopicRecord", 0, {"Name": "t", "TopicId": OTHER_ID}),
        Record("ZkMigrationStateRecord", 0, {}),
    ],
    ids=lambda record: record.name,
)
def test_a_record_that_does_not_follow_is_refused(record: Record) -> None:
    with pytest.raises(ReplayError):
        MetadataDraft(after(EARLIER)).replay(record)


def test_an_image_stays_as_it_was() -> None:
    image = after(EARLIER)
    held = repr(image)
    translate(image, [topic("deleting"), broker(1, "unregistered"), config("cluster", None, a="1"), quorum(epoch=2)])
    translate(image, [partition(1, 1, leader=2), broker(2, "fenced", log_dirs=(MOVED,)), config("topic", "t", z="1")])
    assert repr(image) == held


def test_text_that_is_no_uuid_is_hashed_to_one() -> None:
    assert uuid_of(ID) == ID
    made = uuid_of("/var/lib/kafka")
    assert (len(made), uuid_of(made), uuid_of("/var/lib/kafka")) == (22, made, made)
    assert uuid_of("aaaaaaaaaaaaaaaaaaaaaa") != "aaaaaaaaaaaaaaaaaaaaaa", "its last bits are none of a uuid's"
    assert uuid_of("ä" * 22) != uuid_of("a" * 22)
