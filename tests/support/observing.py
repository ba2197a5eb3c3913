"""A world that observes a cluster: each operation of its controller becomes an ``observed``."""

from pathlib import Path
from typing import Any

from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.interface import Entry
from conf.settings import Settings
from state.decisions import AnyDecision
from streaming.in_process import InProcessEngine
from tests.support.world import World

CLUSTER = "observed-cluster"
# The id of every topic here.
TOPIC_ID = "TP9lxr6dp7ZsOP5Q0S-ctQ"

Row = dict[str, Any]


class Shadow(World):
    """The shadow of a cluster. Operations take one offset each, unless a test says where they stand."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = 0

    def observe(self, cause: str, **fields: Any) -> list[AnyDecision]:
        """Observe the next operation. Fields that are not the event's own are its results."""
        told = {"cluster_id": CLUSTER, "epoch": 1, "cause": cause, "certainty": "certain"}
        own = ("time_ms", "offset", "last_offset", "evidence", "part", "parts", "request_id", *told)
        told |= {name: fields.pop(name) for name in own if name in fields}
        self.offset = told.setdefault("offset", self.offset + 1)
        told.setdefault("last_offset", self.offset)
        return self.publish("observed", **told, results=fields)


class LiveShadow:
    """The bus of a shadow whose reader goes on, decided in this process."""

    def __init__(self, path: Path) -> None:
        self.bus = EmbeddedBus(path)
        self._engine = InProcessEngine(self.bus, Settings())
        self._world = Shadow()

    def tell(self, cause: str, *, ago_ms: int, came_after_ms: int = 20, **fields: Any) -> None:
        """Observe something at a time of the cluster; it comes to the bus a little later, and is decided."""
        time_ms = now_ms() - ago_ms
        self._world.observe(cause, time_ms=time_ms, **fields)
        self.bus.load([Entry(self.bus.last_seq() + 1, self._world.log[-1], time_ms + came_after_ms, False)])
        self._engine.decide()

    def close(self) -> None:
        self.bus.close()


def broker(number: int, *, fenced: bool = False, shutting_down: bool = False, **fields: Any) -> Row:
    """Return the row of a broker, in its first registration unless a test says otherwise."""
    return {
        "broker": number,
        "broker_epoch": number,
        "incarnation": f"first-of-{number}",
        "fenced": fenced,
        "shutting_down": shutting_down,
    } | fields


def partition(
    number: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int,
    epochs: tuple[int, int],
    topic: str = "t",
    **fields: Any,
) -> Row:
    """Return the row of a partition; ``epochs`` are its leader epoch and partition epoch."""
    return {
        "topic": topic,
        "partition": number,
        "replicas": replicas,
        "isr": isr,
        "leader": leader,
        "leader_epoch": epochs[0],
        "partition_epoch": epochs[1],
    } | fields
