"""Admin requests during a history, within what its scenery allows."""

import asyncio
import random
from collections.abc import Callable
from typing import Any, Protocol

from bus.clock import now_ms
from state.events import (
    AlterConfig,
    AlterReassignment,
    AnyEvent,
    BrokerRegister,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    RaiseLevel,
    ReplicaReport,
    TopicPartition,
)
from state.level import NEWEST_LEVEL
from tests.simulation.engine import Batch
from tests.simulation.scenery import Scenery
from tests.simulation.virtual_loop import START_MS

AGAIN_S = (0.0, 0.3, 0.7, 1.2)


class RequestedCluster(Protocol):
    """The part of a cluster that requests need."""

    scenery: Scenery
    state: Batch | None
    places: list[TopicPartition]

    def ask(self, event: AnyEvent) -> None: ...

    def row(self, who: str, what: str, more: str) -> None: ...


def raise_level(cluster: RequestedCluster) -> None:
    """Raise the level for eligible leader replicas, which need it."""
    if cluster.scenery.eligible:
        cluster.ask(RaiseLevel(time_ms=START_MS, level=NEWEST_LEVEL))


class Requests:
    """The maker of requests. ``kinds`` lists their kinds; frequent ones are listed several times."""

    def __init__(self, cluster: RequestedCluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        scenery = cluster.scenery
        self.kinds: list[Callable[[], None]] = [self._prefer, self._reassign]
        if scenery.unclean:
            self.kinds.append(self._elect_unclean)
        if scenery.comes_and_goes:
            self.kinds += [self._come, self._go, self._again, self._again]
        if scenery.configured:
            self.kinds.append(self._configure)

    def _prefer(self) -> None:
        self._cluster.ask(ElectLeaders(time_ms=now_ms(), election_type="preferred", partitions=None))

    def _elect_unclean(self) -> None:
        self._cluster.row("admin", "all", "asks for unclean elections")
        self._cluster.ask(ElectLeaders(time_ms=now_ms(), election_type="unclean", partitions=None))

    def _reassign(self) -> None:
        place = self._rng.choice(self._cluster.places)
        replicas = self._replicas() if self._rng.random() < 0.8 else None
        self._cluster.row("admin", f"{place.topic}-{place.partition}", f"reassigned to {replicas}")
        self._cluster.ask(
            AlterReassignment(time_ms=now_ms(), topic=place.topic, partition=place.partition, replicas=replicas)
        )

    def _replicas(self) -> tuple[int, ...]:
        return tuple(self._rng.sample(self._cluster.scenery.brokers, self._rng.choice((2, 3, 3))))

    def _come(self) -> None:
        place = self._cluster.places[-1]
        self.create(place.topic, 1)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic with replicas on any brokers."""
        scenery, count = self._cluster.scenery, self._rng.choice((2, 3))
        count = 3 if topic == self._cluster.places[0].topic else count
        assignment = {str(p): tuple(self._rng.sample(scenery.brokers, count)) for p in range(partitions)}
        config: dict[str, Any] = {"min.insync.replicas": str(scenery.min_insync)}
        if scenery.unclean and self._rng.random() < 0.5:
            config["unclean.leader.election.enable"] = "true"
        self._cluster.row("admin", topic, f"created on {assignment}")
        self._cluster.ask(CreateTopic(time_ms=now_ms(), topic=topic, assignment=assignment, config=config))

    def _go(self) -> None:
        topic = self._cluster.places[-1].topic
        self._cluster.row("admin", topic, "deleted")
        self._cluster.ask(DeleteTopic(time_ms=now_ms(), topic=topic))

    def _again(self) -> None:
        """Delete the topic and create it again; retry until the deleted one is gone."""
        place = self._cluster.places[-1]
        self._go()
        for try_s in AGAIN_S:
            asyncio.get_running_loop().call_later(try_s, self.create, place.topic, 1)

    def _configure(self) -> None:
        topic = self._rng.choice(self._cluster.places).topic
        value = self._rng.choice(("1", "2", "3", None))
        self._cluster.row("admin", topic, f"min.insync.replicas={value}")
        config: dict[str, Any] = {"min.insync.replicas": value}
        self._cluster.ask(AlterConfig(time_ms=now_ms(), entity="topic", name=topic, config=config))

    def register_another(self, broker: int) -> None:
        """Register another process under a broker's id."""
        self._cluster.row("fault", f"broker-{broker}", "another process registers under its id")
        incarnation = f"another-{self._rng.getrandbits(32)}"
        self._cluster.ask(BrokerRegister(time_ms=now_ms(), broker=broker, incarnation=incarnation))

    def report_offline(self, broker: int) -> None:
        """Report on behalf of a broker that all its replicas have lost their logs."""
        state = self._cluster.state
        known = state.clusters[0].brokers.get(broker) if state is not None else None
        if state is None or known is None:
            return
        self._cluster.row("fault", f"broker-{broker}", "its log directory is lost")
        for topic in state.topics.values():
            for partition in topic.partitions:
                if broker in partition.replicas:
                    report = ReplicaReport(
                        time_ms=now_ms(),
                        topic=topic.topic,
                        partition=partition.partition,
                        broker=broker,
                        broker_epoch=known.broker_epoch,
                        leader_epoch=max(0, partition.leader_epoch),
                        outcome="offline",
                    )
                    self._cluster.ask(report)
