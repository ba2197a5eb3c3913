"""Which partitions are at risk, and how many each broker leads, as the engine counts page by page."""

from collections.abc import Iterable, Mapping

import pytest

from sinks.web.counted_pages import Sum
from sinks.web.partitions import Summary, facts_of, problems_of, summarise
from state.broker import Broker, BrokerState
from state.cluster import Cluster
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaState, Topic, TopicState
from state.policy import Policy
from state.risk import Loss, risk_of, stand_of

ONLINE = (ReplicaState.OnlineReplica,) * 3


def partition(number: int = 0, **fields: object) -> Partition:
    whole = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, **fields}
    return Partition(number, PartitionState.OnlinePartition, replica_states=ONLINE, **whole)  # type: ignore[arg-type]


def topic(*partitions: Partition, name: str = "orders", state: TopicState = TopicState.created, **config: str) -> Topic:
    return Topic(name, "id", state, {key.replace("_", "."): value for key, value in config.items()}, partitions)


def problems(one: Partition, min_isr: int) -> tuple[str, ...]:
    return problems_of(one, stand_of(one, min_isr), is_deleting=False)


def summary_of(*topics: Topic, policy: Policy | None = None, racks: Mapping[int, str] | None = None) -> Summary:
    parts = {(one.topic, facts_of(one), 0): one.partitions for one in topics}
    return summarise(parts, policy or Policy(), racks or {})


def added(summaries: Iterable[Summary], rows_max: int = 10) -> Summary:
    total = Sum()
    for one in summaries:
        total.add(one)
    return total.summary(rows_max)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ()),
        ({"leader": -1}, ("offline",)),
        ({"leader": -1, "isr": (1, 2)}, ("offline", "at_min_isr", "under_replicated")),
        ({"isr": (1, 2)}, ("at_min_isr", "under_replicated")),
        ({"replicas": (1, 2, 3, 4), "isr": (1, 2, 3)}, ("under_replicated",)),
        ({"replicas": (1, 2), "isr": (1, 2)}, ("at_min_isr",)),
        ({"replicas": (1,), "isr": (1,)}, ("one_failure_from_offline", "at_min_isr")),
        ({"isr": (1,)}, ("under_min_isr", "one_failure_from_offline", "under_replicated")),
        ({"isr": (1,), "leader": -1}, ("offline", "under_min_isr", "under_replicated")),
        ({"isr": (1, 2), "adding_replicas": (3,)}, ("at_min_isr", "reassigning")),
        ({"removing_replicas": (3,)}, ("reassigning",)),
        (
            {"isr": (1,), "leader_recovery_state": LeaderRecoveryState.RECOVERING},
            ("under_min_isr", "one_failure_from_offline", "under_replicated", "recovering"),
        ),
    ],
)
def test_the_worst_problem_comes_first(fields: dict[str, object], expected: tuple[str, ...]) -> None:
    assert problems(partition(**fields), 2) == expected


def test_a_partition_that_is_being_deleted_has_no_other_problem() -> None:
    summary = summary_of(topic(partition(leader=-1, isr=(1,)), state=TopicState.deleting))
    assert summary.problems == {"deleting": 1}


def test_a_minimum_above_the_replicas_asks_for_all_of_them() -> None:
    assert problems(partition(), 9) == ("at_min_isr",)
    assert problems(partition(isr=(1, 2)), 9) == ("under_min_isr", "under_replicated")


def test_a_topics_own_minimum_counts_before_the_clusters() -> None:
    short = partition(isr=(1,))
    assert summary_of(topic(short), policy=Policy(min_insync_replicas=2)).problems["under_min_isr"] == 1
    own = summary_of(topic(short, min_insync_replicas="1"), policy=Policy(min_insync_replicas=2))
    assert "under_min_isr" not in own.problems
    impossible = summary_of(topic(short, min_insync_replicas="many"), policy=Policy(min_insync_replicas=2))
    assert impossible.problems["under_min_isr"] == 1
    # The first rules took this for 1, and it may still be in an old state.
    lax = summary_of(topic(short, min_insync_replicas="1.0"), policy=Policy(min_insync_replicas=2))
    assert "under_min_isr" not in lax.problems


def test_a_partition_that_was_created_without_a_spare_is_counted_and_is_not_at_risk() -> None:
    summary = summary_of(topic(partition(0, replicas=(1,), isr=(1,)), partition(1)))
    assert summary.problems == {"one_failure_from_offline": 1, "at_min_isr": 1}
    assert (summary.at_risk, summary.rows) == (0, ())


def test_each_brokers_and_racks_loss_is_the_one_that_isrflow_risk_shows() -> None:
    held = (
        topic(partition(0), partition(1, isr=(2, 3), leader=3), partition(2, isr=(1,)), name="a"),
        topic(partition(0, replicas=(2,), isr=(2,), leader=2), partition(1, replicas=(3, 1), isr=(3, 1), leader=3)),
        topic(partition(0, leader=-1, isr=(2,)), partition(1, removing_replicas=(3,), leader=2), name="b"),
        topic(partition(0, isr=(1,)), name="c", state=TopicState.deleting),
    )
    racks = {1: "x", 2: "x", 3: "y"}
    brokers = {n: Broker(n, n, "i", BrokerState.active, rack, (), (), 0) for n, rack in racks.items()}
    cluster = Cluster(brokers=brokers, config={"min.insync.replicas": "2"})
    expected = risk_of(cluster, held)
    one_by_one = added([summary_of(one, policy=cluster.policy, racks=racks) for one in held])
    assert one_by_one.lost == dict(expected.brokers) == {1: Loss(1, 1, 1), 2: Loss(1, 1, 1), 3: Loss(0, 2, 2)}
    # Brokers 1 and 2 hold two of three replicas of a partition that is well.
    assert one_by_one.lost_racks == dict(expected.racks)
    assert one_by_one.lost_racks["x"] == Loss(2, 4, 2)
    assert summary_of(held[0]).lost_racks == {}
    # An observed controller may do that.
    outside = topic(partition(0, leader=9), partition(1, isr=(1,), leader=9))
    assert summary_of(outside, racks=racks).lost_racks == {}
    assert dict(risk_of(cluster, [outside]).racks)["x"] == Loss()
    assert {risk: one_by_one.problems.get(risk, 0) for risk in expected.counts} == expected.counts


def test_summaries_add_up_to_that_of_the_whole() -> None:
    one = topic(partition(0), partition(1, isr=(1, 2), leader=2), name="b")
    other = topic(partition(0, leader=-1, isr=(3,)), name="a")
    whole = added([summary_of(one, other)])
    assert added([summary_of(one), summary_of(other)]) == whole
    assert [(row.topic, row.partition) for row in whole.rows] == [("a", 0), ("b", 1)]
    assert whole.leaders == {1: 1, 2: 1}
    assert whole.preferred == {1: 3}
    assert whole.replicas == {1: 3, 2: 3, 3: 3}
    assert whole.in_sync == {1: 2, 2: 2, 3: 2}


def test_the_worst_is_one_failure_from_refusing_writes_or_lacks_most_replicas() -> None:
    fields: dict[str, dict[str, object]] = {
        "a": {"replicas": (1, 2, 3, 4, 5), "isr": (1, 2, 3, 4)},
        "b": {"replicas": (1, 2, 3, 4, 5), "isr": (1, 2, 3)},
        "c": {"isr": (1, 2)},
        "d": {"replicas": (1, 2, 3, 4), "isr": (1, 2)},
        "e": {"isr": (1,)},
        "f": {"replicas": (1, 2, 3, 4), "isr": (1,)},
        "g": {"isr": (1, 2), "leader": -1},
        "h": {"isr": (1, 2), "adding_replicas": (3,)},
    }
    topics = [topic(partition(0, **each), name=name) for name, each in fields.items()]
    policy = Policy(min_insync_replicas=2)
    worst_first = ["g", "f", "e", "d", "c", "h", "b", "a"]
    assert [row.topic for row in added([summary_of(one, policy=policy) for one in topics]).rows] == worst_first


def test_only_the_worst_are_kept_and_all_are_counted() -> None:
    many = [partition(number, isr=(1, 2)) for number in range(250)]
    many[-1] = partition(249, leader=-1, isr=(3,))
    summary = added([summary_of(topic(*many))], 7)
    assert (len(summary.rows), summary.at_risk) == (7, 250)
    assert [row.partition for row in summary.rows] == [249, 0, 1, 2, 3, 4, 5]
