"""Requests to a gateway in ZooKeeper mode, with an engine that does whatever it is asked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.zk.apis.context import Context
from brokers.gateways.zk.apis.serving import APIS
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.messages import CREATE_PARTITIONS, CREATE_TOPICS
from brokers.gateways.zk.settings import Settings
from brokers.wire.catalogue import Request
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from state.decisions import Answer
from state.event import AdminEvent
from tests.brokers.gateways.zk.decided import common

Handler = Callable[[Context, Request, Peer], Awaitable[Values]]


class Engine:
    """An engine that does whatever it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def ask(self, *events: AdminEvent, lane: Lane, timeout_ms: int) -> list[Answer]:
        self.asked += events
        return [Answer(**common(), request_id=1, request="x", error="NONE", message="") for _ in events]


def answer(view: ClusterView, api: int, handler: Handler, **values: Any) -> tuple[Values, list[Any]]:
    """Return the response to a request, and what the engine was asked for."""
    engine = Engine()
    gateway: Any = None
    context = Context(
        gateway, Settings(), cast(EngineClient, engine), view, gateway, lambda: True, lambda: 0, cast(Any, None)
    )
    name = {CREATE_TOPICS: "CreateTopics", CREATE_PARTITIONS: "CreatePartitions"}.get(api, "AlterReassignments")
    assert APIS[api] is handler
    return asyncio.run(cast(Any, handler)(context, Request(api, 0, 1, None, name, values), Peer())), engine.asked


def new(name: str, partitions: int, factor: int, assignments: Sequence[Values] = ()) -> Values:
    sizes = {"NumPartitions": partitions, "ReplicationFactor": factor}
    return {"Name": name, "Assignments": list(assignments), "Configs": []} | sizes
