"""Whatever happened, once all brokers are up and do as they are told, nothing is left under way."""

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings

from controller_logic.step import step
from state.cluster import State
from state.decisions import AnyDecision, StopReplica
from state.event_text import decode
from state.events import Logged
from state.partition import Partition, Topic
from state.policy import Policy
from tests.properties.random_logs import BROKERS, Draw, draws, walk

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)


class Quiet:
    """Hold a cluster whose brokers all live and obey."""

    def __init__(self, state: State) -> None:
        self.state = state

    def publish(self, kind: str, **fields: Any) -> None:
        cluster = self.state.cluster
        if kind == "tick":
            fields["controller_epoch"] = cluster.controller_epoch
        raw = msgspec.json.encode({"kind": kind, "time_ms": cluster.clock_ms, **fields})
        logged = Logged(cluster.seq + 1, cluster.clock_ms, decode(raw), raw)
        outcome = step(self.state, [logged], POLICY)
        self.state = outcome.state
        self.obey(outcome.decisions)

    def obey(self, decisions: list[AnyDecision]) -> None:
        """Report each deletion that was asked for."""
        for stop in decisions:
            if isinstance(stop, StopReplica) and stop.delete:
                for broker in stop.to:
                    self.report(stop.topic, stop.partition, broker, stop.leader_epoch, "deleted")

    def report(self, topic: str, partition: int, broker: int, leader_epoch: int, outcome: str) -> None:
        where = {"topic": topic, "partition": partition, "broker": broker}
        epoch = self.state.cluster.brokers[broker].broker_epoch
        self.publish("replica_report", **where, broker_epoch=epoch, leader_epoch=leader_epoch, outcome=outcome)

    def settle(self) -> None:
        """Start every broker anew, let each follower join its ISR, and let time pass."""
        for broker in BROKERS:
            held = self.state.cluster.brokers.get(broker)
            disk = held.log_dirs if held is not None else ()
            if held is not None:
                # Behind a gateway it would have its id to itself until its session ends.
                self.publish("broker_connection_lost", broker=broker, broker_epoch=held.broker_epoch)
            self.publish("broker_register", broker=broker, incarnation="last", log_dirs=disk)
            epoch = self.state.cluster.brokers[broker].broker_epoch
            content = {"want_fence": False, "want_shutdown": False}
            self.publish("broker_heartbeat", broker=broker, broker_epoch=epoch, **content)
        for _ in range(2):
            for topic, partition in [*self.partitions()]:
                self.join(topic, partition)
            self.publish("tick")

    def join(self, topic: Topic, partition: Partition) -> None:
        if partition.leader not in BROKERS:
            return
        where = {"topic": topic.topic, "partition": partition.partition, "leader_epoch": partition.leader_epoch}
        for replica in partition.replicas:
            self.publish("log_end_offset", **where, broker=replica, log_end_offset=1_000)
        request = {"broker": partition.leader, "partition_epoch": partition.partition_epoch}
        epoch = self.state.cluster.brokers[partition.leader].broker_epoch
        isr = [partition.leader, *(r for r in partition.replicas if r != partition.leader)]
        self.publish("alter_isr", **where, **request, broker_epoch=epoch, isr=isr)

    def partitions(self) -> Iterator[tuple[Topic, Partition]]:
        for name in self.state.topics.names():
            topic = self.state.topics.get(name)
            assert topic is not None
            for partition in topic.partitions:
                yield topic, partition


@settings(max_examples=600, deadline=None)
@given(draws(max_size=80))
def test_nothing_is_left_under_way(drawn: list[Draw]) -> None:
    state = [outcome.state for _, _, outcome in walk(drawn, POLICY)][-1]
    quiet = Quiet(state)
    quiet.settle()
    for topic, partition in quiet.partitions():
        where = f"{topic.topic}-{partition.partition}"
        assert topic.shown_state.name == "created", f"{topic.topic} is still being deleted"
        assert not partition.is_reassigning, f"{where} is still being reassigned"
        assert partition.removed == (), f"{where} has removed replicas that were not deleted"
        assert partition.leader in BROKERS, f"{where} has no leader"
        assert set(partition.isr) == set(partition.replicas), f"{where} has replicas that are out of sync"
