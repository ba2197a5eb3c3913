"""Topics that brokers write into ZooKeeper, and what only looks like one."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from brokers.engine.engine_client import EngineClient, NoAnswerError
from brokers.gateways.zk.broker_writes import BrokerWrites
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror import Mirror
from brokers.gateways.zk.transactions import Create
from state.decisions import Answer
from state.event import Event
from state.events import CreateTopic
from tests.brokers.gateways.zk.tree import Tree

T = TypeVar("T")
TOPIC = Create("/brokers/topics/t", b'{"version":3,"partitions":{"0":[1,2]},"topic_id":"i"}')


class Engine:
    """An engine that is asked, and is away."""

    def __init__(self) -> None:
        self.asked: list[Event] = []

    async def ask(self, *events: Event, lane: object) -> list[Answer]:
        self.asked += events
        raise NoAnswerError


def asked(tree: Tree) -> list[Event]:
    """Return what the engine is asked because of the topic ``t``."""
    engine = Engine()

    async def call(what: Callable[..., T], *given: Any, **named: Any) -> T:
        return what(*given, **named)

    async def write(topics: Iterable[str]) -> None:
        raise AssertionError(topics)

    client = cast(EngineClient, engine)
    writes = BrokerWrites(frozenset({100}), client, ClusterView(), Mirror(), tree.session, call, write)
    asyncio.run(writes.ask_for("t"))
    return engine.asked


def test_a_topic_that_is_being_removed_is_not_taken_for_a_new_one() -> None:
    tree = Tree()
    tree.make([TOPIC])
    assert [type(event) for event in asked(tree)] == [CreateTopic]
    tree.make([Create("/brokers/topics/t/partitions", b"")])
    assert asked(tree) == []
