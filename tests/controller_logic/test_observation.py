"""What is observed is adopted: the state is that of the observed cluster, and decisions say what changed and why."""

from state.broker import BrokerState
from state.decisions import (
    BrokerDecision,
    ConfigDecision,
    EntityDecision,
    LeaderAndIsr,
    QuorumDecision,
    Rejected,
    TopicDecision,
)
from state.partition import ReplicaState
from tests.support.observing import TOPIC_ID, Row, Shadow, broker, partition

T = {"topic": "t", "topic_id": TOPIC_ID}


def seeded(*partitions: Row, brokers: tuple[int, ...] = (1, 2, 3), **results: object) -> Shadow:
    """Return the shadow of a cluster with a topic t and active brokers."""
    world = Shadow()
    world.observe("seed", brokers=[broker(one) for one in brokers], topics=[T], partitions=partitions, **results)
    return world


def led_by_1() -> Shadow:
    return seeded(partition(0, (1, 2, 3), (1, 2, 3), 1, (4, 9)))


def reasons(world: Shadow) -> list[tuple[str, str]]:
    return [(str(one.__struct_config__.tag), one.reason.value) for one in world.decisions]


def test_a_seed_is_taken_as_it_is_and_elects_nobody() -> None:
    world = seeded(
        partition(0, (1, 2, 3), (2, 1), 2, (4, 9)),
        # A controller of isrflow would elect broker 1 here.
        partition(1, (1, 2, 3), (1,), -1, (7, 7)),
    )
    assert world.line("t", 0) == "Online leader=2 epoch=4/9 isr=2,1"
    assert world.line("t", 1) == "Offline leader=none epoch=7/7 isr=1"
    assert {one.reason for one in world.decisions} == {"LEVEL_RAISED", "OBSERVATION_BEGAN"}
    assert [(one.is_new, one.to) for one in world.all(LeaderAndIsr)] == [(True, ()), (True, ())]
    assert [(one.broker, one.state) for one in world.all(BrokerDecision)] == [(b, "active") for b in (1, 2, 3)]
    assert world.one(TopicDecision).state == "created"
    totals = world.state.cluster.totals
    assert (totals.topics, totals.partitions, totals.offline, totals.not_preferred) == (1, 2, 1, 1)


def test_a_fence_is_told_with_its_cause() -> None:
    world = led_by_1()
    world.now += 9_000
    world.observe(
        "session_expired",
        evidence={"broker": 1},
        brokers=[broker(1, fenced=True)],
        partitions=[partition(0, (1, 2, 3), (2, 3), 2, (5, 10))],
    )
    assert world.line("t") == "Online leader=2 epoch=5/10 isr=2,3"
    assert world.replica_states("t") == "Offline,Online,Online"
    assert reasons(world) == [("leader_and_isr", "LEADER_FENCED"), ("broker", "BROKER_SESSION_EXPIRED")]
    told = world.one(LeaderAndIsr)
    assert (told.time_ms, told.passed_over, told.unclean, told.is_new) == (10_000, {1: "BROKER_FENCED"}, False, False)
    assert world.broker(1).state is BrokerState.fenced


def test_a_fence_of_a_follower_and_one_of_which_the_log_does_not_say_why() -> None:
    world = led_by_1()
    world.observe(
        "session_or_shutdown",
        certainty="open",
        evidence={"broker": 3, "alternatives": ["session_expired", "shutdown_complete"]},
        brokers=[broker(3, fenced=True)],
        partitions=[partition(0, (1, 2, 3), (1, 2), 1, (4, 10))],
    )
    assert reasons(world) == [("leader_and_isr", "REPLICA_FENCED"), ("broker", "BROKER_FENCED")]


def test_no_tick_and_no_claim_changes_what_is_observed() -> None:
    world = led_by_1()
    world.observe("broker_registered", brokers=[broker(4, fenced=True)])
    before = world.state
    world.claim()
    world.tick(600_000)
    assert world.decisions == []
    assert world.state.topics.get("t") == before.topics.get("t")
    assert world.state.cluster.brokers == before.cluster.brokers


def test_an_unclean_election_is_one_whose_leader_has_yet_to_recover() -> None:
    world = seeded(partition(0, (1, 2), (1,), -1, (5, 5)))
    world.observe(
        "unclean_election",
        partitions=[partition(0, (1, 2), (2,), 2, (6, 6), leader_recovery_state="RECOVERING")],
    )
    told = world.one(LeaderAndIsr)
    assert (told.reason, told.unclean, told.leader_recovery_state) == ("UNCLEAN_ELECTION", True, "RECOVERING")
    world.observe("leader_recovered", partitions=[partition(0, (1, 2), (2,), 2, (6, 7))])
    told = world.one(LeaderAndIsr)
    assert (told.reason, told.unclean, told.leader_recovery_state) == ("LEADER_RECOVERED", False, "RECOVERED")


def test_a_topic_is_created_with_its_settings_and_deleted_at_once() -> None:
    world = led_by_1()
    other = {"topic": "other", "topic_id": "4Yt2vYOBQ0mUFi8VF2mBZw"}
    setting = {"entity_type": "topic", "entity": "other", "key": "min.insync.replicas", "value": "2"}
    rows = [partition(number, (1, 2), (1, 2), 1, (0, 0), "other") for number in (1, 0)]
    world.observe("topic_created", topics=[other], partitions=rows, settings=[setting])
    assert world.one(TopicDecision).config == {"min.insync.replicas": "2"}
    assert [one.reason for one in world.all(LeaderAndIsr)] == ["TOPIC_CREATED"] * 2
    assert world.state.cluster.totals.at_min_isr == 2
    world.observe("topic_deleted", deleted_topics=[other])
    assert [(one.state, one.reason) for one in world.all(TopicDecision)] == [("deleted", "TOPIC_DELETED")]
    assert world.state.topics.names() == ["t"]
    assert world.state.cluster.totals.at_min_isr == 0


def test_a_topic_that_was_made_again_during_a_gap_is_another_one() -> None:
    world = led_by_1()
    again = {"topic": "t", "topic_id": "4Yt2vYOBQ0mUFi8VF2mBZw"}
    world.observe("gap", deleted_topics=[T], topics=[again], partitions=[partition(0, (2, 3), (2, 3), 2, (0, 0))])
    assert [(one.state, one.topic_id) for one in world.all(TopicDecision)] == [("created", again["topic_id"])]
    assert reasons(world) == [("leader_and_isr", "RECORDS_MISSED"), ("topic", "RECORDS_MISSED")]
    assert world.line("t") == "Online leader=2 epoch=0/0 isr=2,3"


def test_a_gap_tells_only_what_differs() -> None:
    world = seeded(partition(0, (1, 2, 3), (1, 2, 3), 1, (4, 9)), partition(1, (2, 3, 1), (2, 3, 1), 2, (0, 0)))
    world.observe(
        "gap",
        brokers=[broker(one) for one in (1, 2, 3)],
        topics=[T],
        partitions=[partition(0, (1, 2, 3), (1, 2), 1, (4, 12)), partition(1, (2, 3, 1), (2, 3, 1), 2, (0, 0))],
    )
    assert [(one.partition, one.reason, one.isr) for one in world.decisions] == [(0, "RECORDS_MISSED", (1, 2))]


def test_replicas_of_a_failed_directory_are_offline() -> None:
    several = ("directory-a", "directory-b")
    world = Shadow()
    world.observe(
        "seed",
        brokers=[broker(1, log_dirs=several), broker(2)],
        topics=[T],
        partitions=[
            partition(0, (1, 2), (1, 2), 1, (0, 0), directories=("directory-a", "directory-c")),
            partition(1, (1, 2), (1, 2), 1, (0, 0), directories=("directory-b", "directory-c")),
        ],
    )
    world.observe(
        "directory_failed",
        evidence={"broker": 1},
        brokers=[broker(1, log_dirs=["directory-b"])],
        partitions=[partition(0, (1, 2), (2,), 2, (1, 1), directories=("directory-a", "directory-c"))],
    )
    assert (world.replica_states("t", 0), world.replica_states("t", 1)) == ("Offline,Online", "Online,Online")
    assert reasons(world) == [("leader_and_isr", "LEADER_FENCED"), ("broker", "LOG_DIR_FAILED")]
    assert world.one(LeaderAndIsr).passed_over == {1: "LOG_LOST"}


def test_cordoned_directories_are_adopted() -> None:
    world = led_by_1()
    row = broker(2, log_dirs=["directory-c"], cordoned_log_dirs=["directory-c"])
    world.observe("directories_cordoned", evidence={"broker": 2}, brokers=[row])
    assert reasons(world) == [("broker", "LOG_DIRS_CORDONED")]
    assert world.state.cluster.brokers[2].is_cordoned


def test_an_unregistered_broker_is_gone_and_its_replicas_are_offline() -> None:
    world = led_by_1()
    row = partition(0, (1, 2, 3), (1, 2), 1, (4, 10))
    world.observe("broker_unregistered", evidence={"broker": 3}, unregistered_brokers=[3], partitions=[row])
    assert reasons(world) == [("leader_and_isr", "REPLICA_FENCED"), ("broker", "BROKER_UNREGISTERED")]
    assert sorted(world.state.cluster.brokers) == [1, 2]
    assert world.replica_states("t") == "Online,Online,Offline"


def test_settings_features_and_the_controller_are_adopted() -> None:
    def setting(entity_type: str, entity: str, key: str, value: str | None) -> Row:
        return {"entity_type": entity_type, "entity": entity, "key": key, "value": value}

    world = led_by_1()
    world.observe(
        "gap",
        settings=[
            setting("cluster", "", "min.insync.replicas", "2"),
            setting("broker", "1", "log.cleaner.threads", "2"),
            setting("broker", "2", "log.cleaner.threads", "3"),
            setting("topic", "t", "retention.ms", "1"),
            setting("group", "g", "consumer.session.timeout.ms", "50000"),
        ],
        features=[{"name": "metadata.version", "level": 27}],
        controller={"controller": 101, "epoch": 3},
    )
    told = {(one.entity, one.name): one.config for one in world.all(ConfigDecision)}
    assert told == {
        ("cluster", None): {"min.insync.replicas": "2"},
        ("broker", "1"): {"log.cleaner.threads": "2"},
        ("broker", "2"): {"log.cleaner.threads": "3"},
        ("topic", "t"): {"retention.ms": "1"},
    }
    assert [one.values for one in world.all(EntityDecision)] == [
        {"metadata.version": "27"},
        {"consumer.session.timeout.ms": "50000"},
    ]
    quorum = world.one(QuorumDecision)
    assert (quorum.voter, quorum.quorum_epoch, quorum.reason) == (101, 3, "CONTROLLER_CHANGED")
    world.observe("settings_changed", settings=[setting("cluster", "", "min.insync.replicas", None)])
    assert world.one(ConfigDecision).config == {}


def test_a_row_that_cannot_be_kept_is_left_out_and_named() -> None:
    world = led_by_1()
    world.observe(
        "other",
        partitions=[
            partition(0, (1, 2, 3), (1, 2), 1, (4, 10)),
            partition(5, (1,), (1,), 1, (0, 0)),
            partition(0, (1,), (1,), 1, (0, 0), "unknown"),
        ],
    )
    assert world.line("t") == "Online leader=1 epoch=4/10 isr=1,2"
    found = [(one.topic, one.partition, one.field, one.message) for one in world.all(Rejected)]
    assert found == [
        ("t", 5, "results.partitions", "expected partition 1 before"),
        ("unknown", 0, "results.partitions", "expected the row of its topic before"),
    ]


def test_replica_states_follow_a_broker_that_comes_back() -> None:
    world = led_by_1()
    row = partition(0, (1, 2, 3), (1, 2), 1, (4, 10))
    world.observe("session_expired", evidence={"broker": 3}, brokers=[broker(3, fenced=True)], partitions=[row])
    assert world.replica_states("t") == "Online,Online,Offline"
    world.observe("broker_ready", evidence={"broker": 3}, brokers=[broker(3)])
    assert world.partition("t").replica_states == (ReplicaState.OnlineReplica,) * 3
    assert reasons(world) == [("broker", "BROKER_UNFENCED")]
