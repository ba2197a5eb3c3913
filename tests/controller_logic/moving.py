"""Move topic t of a world between brokers, and describe its assignment."""

from typing import Any

from state.decisions import StopReplica
from tests.support.world import World


def move(world: World, *replicas: int, **fields: Any) -> None:
    world.publish("alter_reassignment", **({"topic": "t", "partition": 0, "replicas": replicas} | fields))


def cancel(world: World) -> None:
    move(world, replicas=None)


def assigned(world: World) -> str:
    """Describe the replicas, with those that are added and removed: ``4,1,2 +4 -1``."""
    partition = world.partition("t")
    moving = (("+", partition.adding_replicas), ("-", partition.removing_replicas))
    return " ".join([_ids(partition.replicas), *(sign + _ids(ids) for sign, ids in moving if ids)])


def removed(world: World) -> str:
    entries = world.partition("t").removed
    return ",".join(f"{entry.broker} {entry.state.name.removeprefix('ReplicaDeletion')}" for entry in entries)


def told_to_delete(world: World) -> tuple[int, ...]:
    stops = world.all(StopReplica)
    epoch = world.partition("t").leader_epoch
    assert all((stop.delete, stop.leader_epoch, stop.reason) == (True, epoch, "REASSIGNMENT") for stop in stops)
    assert len(stops) <= 1
    return stops[0].to if stops else ()


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(str(broker) for broker in brokers)
