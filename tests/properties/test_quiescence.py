"""Once all brokers are up and obey, nothing stays unfinished, whatever happened before."""

from collections.abc import Iterator

from hypothesis import given, settings

from state.cluster import State
from state.decisions import AnyDecision, StopReplica
from state.partition import Partition, Topic
from state.policy import Policy
from tests.support.random_events import BROKERS
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw
from tests.support.world import World

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)


class Quiet(World):
    """A cluster whose brokers all live and obey."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.now = state.cluster.clock_ms
        self.policy = POLICY
        self.state = state
        # The laws have been checked on the way here.
        self.is_checked = False

    def publish_raw(self, raw: bytes) -> list[AnyDecision]:
        decisions = super().publish_raw(raw)
        self.now = self.state.cluster.clock_ms
        self.obey(decisions)
        return decisions

    def obey(self, decisions: list[AnyDecision]) -> None:
        """Report each requested deletion."""
        for stop in decisions:
            if isinstance(stop, StopReplica) and stop.delete:
                for broker in stop.to:
                    self.report(stop, broker)

    def report(self, stop: StopReplica, broker: int) -> None:
        where = {"topic": stop.topic, "partition": stop.partition, "broker": broker, "leader_epoch": stop.leader_epoch}
        self.publish("replica_report", **where, broker_epoch=self.broker(broker).broker_epoch, outcome="deleted")

    def settle(self) -> None:
        """Restart every broker, have each follower join its ISR, and advance time."""
        for broker in BROKERS:
            held = self.state.cluster.brokers.get(broker)
            disk = held.log_dirs if held is not None else ()
            if held is not None:
                # Behind a gateway, another process cannot take a live broker's id before its session ends or its
                # connection is lost.
                self.publish("broker_connection_lost", broker=broker, broker_epoch=held.broker_epoch)
            self.join(broker, incarnation="last", log_dirs=disk)
        for _ in range(2):
            for topic, partition in [*self.partitions()]:
                self.catch_up(topic, partition)
            self.tick()

    def catch_up(self, topic: Topic, partition: Partition) -> None:
        if partition.leader not in BROKERS:
            return
        self.offsets(topic.topic, partition.partition, **{f"b{replica}": 1_000 for replica in partition.replicas})
        isr = (partition.leader, *(r for r in partition.replicas if r != partition.leader))
        fences = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
        self.alter_isr(topic.topic, isr, **fences, partition=partition.partition, broker=partition.leader)

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
        if set(partition.isr) <= set(partition.lost_logs):
            # Every in-sync replica came back without its log. Only an unclean election may make it lead.
            continue
        assert partition.leader in BROKERS, f"{where} has no leader"
        assert set(partition.isr) == set(partition.replicas), f"{where} has replicas that are out of sync"
