"""Topics and settings that brokers put into ZooKeeper themselves.

A broker that needs an internal topic writes an assignment into ZooKeeper, and picks its replicas from all brokers that
it knows, the gateway among them. The engine then assigns instead.
"""

from collections.abc import Iterable, Mapping

from brokers.gateways.zk.znodes import TopicZnode
from state.events import AlterConfig, CreateTopic


def creation(
    name: str, znode: TopicZnode, config: dict[str, str], gateways: frozenset[int], time_ms: int
) -> CreateTopic:
    """Return the event that asks for a topic as a broker wrote it, or of the same size if it names a gateway."""
    numbers = sorted(znode.partitions)
    named = {replica for replicas in znode.partitions.values() for replica in replicas}
    if named & gateways or numbers != list(range(len(numbers))):
        factor = max((len(replicas) for replicas in znode.partitions.values()), default=1)
        return CreateTopic(
            time_ms=time_ms, topic=name, partitions=len(numbers), replication_factor=factor, config=dict(config)
        )
    assignment = {str(number): znode.partitions[number] for number in numbers}
    return CreateTopic(time_ms=time_ms, topic=name, assignment=assignment, config=dict(config))


def alteration(
    topic: str, decided: Mapping[str, str], found: Mapping[str, str], time_ms: int, unanswered: Iterable[str] = ()
) -> AlterConfig | None:
    """Return the event that makes the engine's settings of a topic those found in ZooKeeper; None if they are.

    ``unanswered`` names settings that the engine may yet change, because it was asked before and has not answered.
    """
    changed: dict[str, str | None] = {name: value for name, value in found.items() if decided.get(name) != value}
    changed |= {name: None for name in decided if name not in found}
    changed |= {name: found.get(name) for name in unanswered}
    return AlterConfig(time_ms=time_ms, entity="topic", name=topic, config=dict(changed)) if changed else None
