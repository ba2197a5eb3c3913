"""A rule's effect that is repeated for alike partitions is what the rule itself would do to each."""

from collections.abc import Iterable, Iterator
from itertools import permutations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from controller_logic.availability import broker_started, brokers_failed
from controller_logic.batch import Batch
from controller_logic.replay import DecidedLog, decide
from controller_logic.shutdown import ask_shutdown
from controller_logic.step import step
from state.alike import AlikeDecisions, Said
from state.broker import Broker, BrokerState
from state.cluster import Cluster, MappedTopics, State
from state.event_text import decode
from state.events import ControlledShutdown, Logged
from state.ids import NO_EPOCH, NO_LEADER
from state.partition import (
    LeaderRecoveryState,
    Partition,
    PartitionState,
    RemovedReplica,
    ReplicaLag,
    ReplicaState,
    ReportedLog,
    Topic,
    TopicState,
)
from state.policy import Policy
from tests.histories.recorded import History, all_histories
from tests.support.by_reference import by_reference
from tests.support.lying_clocks import entries
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw
from tests.support.world import World

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
# How often the partitions of a random topic come, so that some are alike.
TIMES = 4
HISTORIES = all_histories()


def broadened(raws: Iterable[bytes]) -> Iterator[bytes]:
    """Repeat the partitions of each new topic, also on other brokers. What is told of the first ones stays right."""
    for raw in raws:
        event = msgspec.json.decode(raw) if b'"kind":"create_topic"' in raw else {}
        if event.get("assignment"):
            lists = [ids[n:] + ids[:n] for n in range(TIMES) for ids in event["assignment"].values()]
            raw = msgspec.json.encode(event | {"assignment": {str(n): replicas for n, replicas in enumerate(lists)}})
        elif event.get("partitions", 0) > 0:
            raw = msgspec.json.encode(event | {"partitions": event["partitions"] * 3 * TIMES})
        yield raw


@settings(max_examples=30, deadline=None)
@given(draws(max_size=80))
def test_repeated_effects_are_those_of_the_rules(drawn: list[Draw]) -> None:
    log = list(entries(broadened(raw for _, raw, _ in walk(drawn, POLICY))))
    repeated = decide(log, POLICY, batch_sizes=(7,))
    with by_reference():
        reference = decide(log, POLICY, batch_sizes=(7,))
    assert repeated.decisions == reference.decisions
    assert held(repeated) == held(reference)


def held(decided: DecidedLog) -> tuple[object, list[object]]:
    """Return all of the state, with its counts."""
    topics = [[state.topics.get(name) for name in state.topics.names()] for state in decided.states]
    return topics, [state.cluster for state in decided.states]


BASES = [
    Partition(
        0,
        PartitionState.OnlinePartition,
        (1, 2),
        (ReplicaState.OnlineReplica,) * 2,
        isr,
        leader,
        1,
        3,
        completed_epochs=completed,
        requested_epochs=requested,
    )
    for isr, leader in (((1, 2), 1), ((1, 2), 2), ((1,), 1), ((2,), 2))
    for completed, requested in (((), ()), ((1, 1), (1, 1)), ((0, 1), (1, 1)))
]
DEFAULTS, WITH_ELIGIBLE = Policy(), Policy(eligible_leader_replicas_version=1)
VALUES: dict[str, list[Any]] = {
    "state": list(PartitionState),
    "replicas": [(2, 1), (1, 3), (3, 1)],
    "replica_states": [(one, other) for one in list(ReplicaState)[1:4] for other in list(ReplicaState)[1:4]],
    "isr": [(1,), (2,), (1, 2), (2, 1), ()],
    "leader": [1, 2, NO_LEADER],
    "leader_epoch": [NO_EPOCH, 0, 2],
    "partition_epoch": [NO_EPOCH, 0, 7],
    "leader_recovery_state": [LeaderRecoveryState.RECOVERING],
    "adding_replicas": [(2,)],
    "removing_replicas": [(2,)],
    "high_watermark": [5],
    "high_watermark_epoch": [1],
    "log_end_offsets": [(5, 6)],
    "offset_epochs": [(1, 1)],
    "removed": [(RemovedReplica(1, 0, ReplicaState.ReplicaDeletionIneligible),)],
    "completed_epochs": [(), (0, 0), (1, 0), (0, 1), (1, 1)],
    "requested_epochs": [(), (0, 0), (1, 0), (0, 1), (1, 1)],
    "received_epochs": [(1, 1)],
    "lags": [(ReplicaLag(1, 2, 3),) * 2],
    "lost_logs": [(1,)],
    "directories": [("A", "")],
    "elr": [(1,), (2,), (1, 2)],
    "last_known_elr": [(1,), (2,)],
    "former_members": [(1,), (2,)],
    "reported_logs": [(ReportedLog(1, 1, 0, 5),)],
    "min_isr_read": [1, 2],
}


def test_every_field_of_a_partition_is_compared() -> None:
    assert {"partition", *VALUES} == {*Partition.__struct_fields__}


def _broker(broker: int, state: BrokerState) -> Broker:
    return Broker(broker, broker, "i", state, rack=None, listeners=(), log_dirs=(), last_contact_ms=0)


def cluster_about(state: BrokerState = BrokerState.active) -> Cluster:
    """Return a cluster of three brokers under the newest rules, the first of which is in ``state``."""
    brokers = {n: _broker(n, state if n == 1 else BrokerState.active) for n in (1, 2, 3)}
    return Cluster(brokers=brokers, backlog=dict.fromkeys(brokers, 99))


def _effect(partitions: list[Partition], rule: str, configs: list[dict[str, str]], policy: Policy = DEFAULTS) -> object:
    """Work one rule about broker 1 into topics of one partition each; return all that came of it."""
    lost = rule == "brokers_failed"
    topics = {
        f"t{n}": Topic(f"t{n}", f"id{n}", TopicState.created, config, (partition,))
        for n, (partition, config) in enumerate(zip(partitions, configs, strict=True))
    }
    cluster = cluster_about(BrokerState.fenced if lost else BrokerState.active)
    brokers = cluster.brokers
    batch = Batch(State(cluster, MappedTopics(topics)), policy, {})
    batch.begin(Logged(1, 1, ControlledShutdown(time_ms=1, broker=1, broker_epoch=1), b"event"))
    if lost:
        brokers_failed(batch, frozenset({1}))
    elif rule == "broker_started":
        broker_started(batch, 1)
    else:
        ask_shutdown(batch, brokers[1])
    outcome = batch.outcome()
    return outcome.state, outcome.changes, outcome.decisions


@pytest.mark.parametrize("policy", [DEFAULTS, WITH_ELIGIBLE], ids=["usual", "eligible"])
@pytest.mark.parametrize("rule", ["brokers_failed", "broker_started", "ask_shutdown"])
@pytest.mark.parametrize("field", VALUES)
def test_partitions_that_differ_in_one_field_each_get_what_the_rule_decides(
    field: str, rule: str, policy: Policy
) -> None:
    for base in BASES:
        for value in VALUES[field]:
            other = replace(base, **{field: value})
            for both in ([base, other], [other, base]):
                repeated = _effect(both, rule, [{}, {}], policy)
                with by_reference():
                    assert _effect(both, rule, [{}, {}], policy) == repeated


def _renamed(partition: Partition, names: tuple[int, ...]) -> Partition:
    """Return a partition on other brokers: ``names`` in place of 1, 2 and 3."""
    replicas, isr = (tuple([names[broker - 1] for broker in ids]) for ids in (partition.replicas, partition.isr))
    return replace(partition, replicas=replicas, isr=isr, leader=names[partition.leader - 1])


@pytest.mark.parametrize("rule", ["brokers_failed", "broker_started", "ask_shutdown"])
def test_partitions_on_other_brokers_each_get_what_the_rule_decides(rule: str) -> None:
    for base in BASES:
        for both in product([_renamed(base, names) for names in permutations((1, 2, 3))], repeat=2):
            repeated = _effect([*both], rule, [{}, {}])
            with by_reference():
                assert _effect([*both], rule, [{}, {}]) == repeated


@pytest.mark.parametrize("rule", ["brokers_failed", "broker_started", "ask_shutdown"])
def test_partitions_keep_the_directories_of_their_own_replicas(rule: str) -> None:
    for base in BASES:
        for both in product([replace(base, directories=some) for some in ((), ("A", ""), ("B", "C"))], repeat=2):
            repeated = _effect([*both], rule, [{}, {}])
            with by_reference():
                assert _effect([*both], rule, [{}, {}]) == repeated


@pytest.mark.parametrize("rule", ["brokers_failed", "broker_started", "ask_shutdown"])
@pytest.mark.parametrize("config", [{"min.insync.replicas": "2"}, {"unclean.leader.election.enable": "true"}])
def test_topics_that_differ_in_a_setting_each_get_what_the_rule_decides(config: dict[str, str], rule: str) -> None:
    for base in BASES:
        for configs in ([{}, config], [config, {}], [config, config]):
            repeated = _effect([base, base], rule, configs)
            with by_reference():
                assert _effect([base, base], rule, configs) == repeated


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
def test_the_rules_alone_decide_a_recorded_log_as_before(history: History) -> None:
    with by_reference():
        decided = [body for _, _, body in decide(history.events, Policy()).decisions]
    assert decided == history.decisions


def repeated_in(said: list[Said]) -> int:
    """Return how many decisions repeat an effect."""
    return sum(len(one.rows) for one in said if isinstance(one, AlikeDecisions))


def test_each_change_of_many_partitions_repeats_effects() -> None:
    world = World(1, 2, 3, 4)
    world.create("t", *[(1, 2, 3), (2, 3, 1), (3, 4, 1)] * 5)
    made = world.outcome
    world.fence(1)
    lost = world.outcome
    world.beat(1)
    returned = world.outcome
    world.publish("controlled_shutdown", broker=3, broker_epoch=world.broker(3).broker_epoch)
    outcomes = (made, lost, returned, world.outcome)
    # Of fifteen, the rule was asked about one, two, two and three. Those that a broker in shutdown follows are told in
    # two decisions.
    assert [repeated_in(outcome.said) for outcome in outcomes] == [14, 13, 13, 20]


def _created(between: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Create two topics on the same replicas, one after some events and one before, in one batch."""
    lists = {str(n): replicas for n, replicas in enumerate([[1, 2], [2, 1], [1, 2], [3, 1], [4, 3]])}
    create = {"kind": "create_topic", "assignment": lists}
    register = {"kind": "broker_register", "listeners": [], "rack": None}
    beat = {"kind": "broker_heartbeat", "want_fence": False, "want_shutdown": False}
    return [
        {"kind": "controller_started", "controller_id": "c", "controller_epoch": 1, "settings": {}},
        *(register | {"broker": n, "incarnation": f"i{n}"} for n in range(1, 5)),
        *(beat | {"broker": n, "broker_epoch": n + 1} for n in range(1, 4)),
        create | {"topic": "first"},
        *between,
        create | {"topic": "second", "config": {"min.insync.replicas": "2"}},
        create | {"topic": "third"},
        {"kind": "create_partitions", "topic": "third", "total": 9},
    ]


@pytest.mark.parametrize(
    "between",
    [
        [],
        [{"kind": "controlled_shutdown", "broker": 1, "broker_epoch": 2}],
        [{"kind": "broker_unregister", "broker": 4}],
        [{"kind": "broker_heartbeat", "broker": 4, "broker_epoch": 5, "want_fence": False, "want_shutdown": False}],
        [{"kind": "alter_config", "entity": "cluster", "config": {"min.insync.replicas": "2"}}],
        [{"kind": "controller_started", "controller_id": "d", "controller_epoch": 2, "settings": {}}],
        [{"kind": "broker_register", "broker": 2, "incarnation": "again", "listeners": [], "rack": None}],
    ],
)
def test_later_topics_of_a_batch_get_what_the_rule_decides(between: list[dict[str, Any]]) -> None:
    events = _created(between)
    log = [(n, msgspec.json.encode(event | {"time_ms": 10 * n})) for n, event in enumerate(events, start=1)]
    repeated = decide(log, POLICY)
    with by_reference():
        reference = decide(log, POLICY)
    assert repeated.decisions == reference.decisions
    assert held(repeated) == held(reference)
    assert not [body for _, _, body in reference.decisions if b'"kind":"rejected"' in body]


def test_a_later_topic_of_a_batch_repeats_the_effects_on_the_first() -> None:
    raws = [msgspec.json.encode(event | {"time_ms": 10 * n}) for n, event in enumerate(_created([]), start=1)]
    events = [Logged(n, 10 * n, decode(raw), raw) for n, raw in enumerate(raws, start=1)]
    said = step(State(Cluster(), MappedTopics()), events, POLICY).said
    rows = [named[0] for one in said if isinstance(one, AlikeDecisions) for named, *_ in one.rows]
    # A fenced broker is first in one of five partitions. The second topic has its own min.insync.replicas.
    assert [rows.count(topic) for topic in ("first", "second")] == [3, 3]
    assert rows.count("third") >= 5
