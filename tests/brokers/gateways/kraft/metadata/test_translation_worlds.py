"""A broker that follows the metadata log knows what the rules know, whatever they decide."""

from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.snapshot import image_of, records_of
from brokers.gateways.kraft.metadata.translate import Entry, translate
from brokers.gateways.kraft.metadata.uuids import uuid_of
from brokers.wire.metadata.record_frame import decode_record
from state.broker import BrokerState
from state.canonical import number
from state.cluster import Outcome, State
from state.decisions import AnyDecision, ConfigDecision, decode
from state.ids import NO_EPOCH
from state.log_directory import MIGRATING, UNASSIGNED
from state.part import part_of
from state.partition import Partition, TopicState
from state.policy import Policy
from tests.support.kraft_image import Broker
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
# The quorum gets its leader early in half of the worlds, and late or never in the others.
LEADER: Draw = ("gateway", 0, 0, 0)
FIRST: Draw = ("register", 0, 0, 0)


def decided(outcome: Outcome) -> list[AnyDecision]:
    return [decode(body) for _, _, body in number([part_of(decision) for decision in outcome.decisions])]


def steps(drawn: list[Draw]) -> Iterator[tuple[State, list[AnyDecision]]]:
    for _, _, outcome in walk(drawn, POLICY):
        yield outcome.state, decided(outcome)


def values_of(entry: Entry | None) -> list[bytes]:
    return [] if entry is None else list(entry.records)


def partition_seen(partition: dict[str, Any]) -> tuple[Any, ...]:
    fields = ("Leader", "LeaderEpoch", "PartitionEpoch", "Isr", "Replicas", "AddingReplicas", "RemovingReplicas")
    return (*[partition[field] for field in fields], partition["LeaderRecoveryState"])


def partition_known(partition: Partition) -> tuple[Any, ...]:
    return (
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        list(partition.isr),
        list(partition.replicas),
        list(partition.adding_replicas),
        list(partition.removing_replicas),
        partition.leader_recovery_state,
    )


def check(broker: Broker, state: State) -> None:
    topics = [topic for name in state.topics.names() if (topic := state.topics.get(name)) is not None]
    topics = [topic for topic in topics if topic.state == TopicState.created]
    assert broker.topics == {topic.topic_id: topic.topic for topic in topics}
    known = {
        (topic.topic_id, partition.partition): partition_known(partition)
        for topic in topics
        for partition in topic.partitions
        if partition.leader_epoch != NO_EPOCH
    }
    assert {key: partition_seen(partition) for key, partition in broker.partitions.items()} == known
    check_brokers(broker, state)
    configs = {(2, topic.topic): topic.config for topic in topics} | {
        (4, ""): state.cluster.config | state.cluster.in_force
    }
    configs |= {(4, name): config for name, config in state.cluster.broker_config.items()}
    assert {k: c for k, c in broker.configs.items() if c} == {k: c for k, c in configs.items() if c}
    assert max(0, broker.next_producer_id) == state.cluster.next_producer_id


def check_brokers(broker: Broker, state: State) -> None:
    seen = {
        number: (held["BrokerEpoch"], held["Fenced"], held["InControlledShutdown"] and not held["Fenced"])
        for number, held in broker.brokers.items()
    }
    assert seen == {
        number: (held.broker_epoch, held.state == BrokerState.fenced, held.state == BrokerState.controlled_shutdown)
        for number, held in state.cluster.brokers.items()
    }
    for held in state.cluster.brokers.values():
        assert broker.brokers[held.broker]["LogDirs"] == [uuid_of(directory) for directory in held.log_dirs]
    # These say themselves where their replicas are, even if all but one of their directories are gone.
    says_itself = {held.broker for held in state.cluster.brokers.values() if held.has_several_dirs}
    for partition in broker.partitions.values():
        for replica, directory in zip(partition["Replicas"], partition["Directories"], strict=True):
            # A broker that registers when all its directories have failed keeps the one that it had. Kafka's ends then.
            if (holder := broker.brokers.get(replica)) is not None and holder["LogDirs"]:
                assert directory in (MIGRATING, UNASSIGNED, *holder["LogDirs"])
                is_somewhere = directory not in (MIGRATING, UNASSIGNED)
                assert is_somewhere or len(holder["LogDirs"]) != 1 or replica in says_itself


def set_again(decisions: list[AnyDecision]) -> frozenset[str]:
    told = [decision for decision in decisions if isinstance(decision, ConfigDecision)]
    return frozenset(name for decision in told for name in decision.set_again or ())


@settings(max_examples=300, deadline=None)
@given(draws(max_size=80))
@example([("config", 0, 0, 0), LEADER, ("config", 0, 0, 0)])
@example(
    [
        *[FIRST] * 33,
        ("register", 0, 1, 0),
        ("gateway", 0, 1, 0),
        ("crashes", 0, 0, 0),
        ("register", 0, 3, 0),
        *[FIRST] * 3,
    ]
)
def test_a_broker_knows_what_the_rules_know_after_every_event(drawn: list[Draw]) -> None:
    for world in ([LEADER, *drawn], drawn):
        image, broker = MetadataImage(), Broker()
        for state, decisions in steps(world):
            if decisions:
                image, entry = translate(image, decisions)
                broker.set_again = set_again(decisions)
                for value in values_of(entry):
                    broker.take(value)
                assert entry is None or entry.quorum_epoch == state.cluster.quorum.quorum_epoch
            if state.cluster.quorum.quorum_epoch:
                check(broker, state)
            else:
                assert broker.brokers == {}
            assert image.quorum_epoch == state.cluster.quorum.quorum_epoch


@settings(max_examples=150, deadline=None)
@given(draws(max_size=60))
def test_an_image_from_a_snapshot_continues_like_the_original(drawn: list[Draw]) -> None:
    image = MetadataImage()
    for _, decisions in steps([LEADER, *drawn]):
        if not decisions:
            continue
        before = image
        image, entry = translate(before, decisions)
        if before.quorum_epoch:
            stored = [decode_record(record) for record in records_of(before)]
            restored = image_of(stored, before.quorum_epoch)
            assert restored == before
            assert list(records_of(restored)) == list(records_of(before))
            again, same = translate(restored, decisions)
            assert (again, values_of(same)) == (image, values_of(entry))
            if entry is not None:
                replayed = image_of([*stored, *[decode_record(v) for v in values_of(entry)]], entry.quorum_epoch)
                assert replayed == image
