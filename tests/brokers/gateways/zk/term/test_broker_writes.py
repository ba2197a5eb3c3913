"""Settings that a broker wrote into ZooKeeper while the engine is away, or slow."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, cast

import pytest

from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.zk import znodes
from brokers.gateways.zk.client import connection
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror.mirror import Changes, Mirror
from brokers.gateways.zk.term import broker_writes
from brokers.gateways.zk.term.broker_writes import BrokerWrites
from state.decisions import Answer
from state.event import Event
from state.events import AlterConfig
from tests.brokers.gateways.zk.decided import common, led, topic
from tests.brokers.gateways.zk.znode_tree import ZnodeTree
from tests.support.waiting import TIMEOUT_S

CONFIG = f"{znodes.TOPIC_CONFIGS}/t"


class SlowEngine:
    """An engine that is asked: it does what ``answers`` say, one after the other, and returns their errors."""

    def __init__(self, *answers: Callable[[], str | None]) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers = list(answers)

    async def ask_once(self, events: Mapping[Hashable, Event], lane: Lane) -> list[Answer]:
        [event] = events.values()
        assert isinstance(event, AlterConfig)
        self.asked.append(dict(event.config))
        error = self._answers.pop(0)()
        if error is None:
            raise NoAnswerError("no answer")
        return [Answer(**common(), request_id="i-1", request="alter_config", error=error, message="")]


class Term:
    """A term's part that deals with what brokers wrote, with topic ``t`` and its settings ``a=1``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(broker_writes, "ASK_AGAIN_S", 0)
        self.tree, self.view, self.mirror = ZnodeTree(), ClusterView(), Mirror()
        self.view.apply(led())
        self.decide(a="1")
        monkeypatch.setattr(connection, "ManyReads", self.tree)
        self._session = Session("", 0, lambda path: None, lambda why: None)
        self._session.take(100, frozenset({100}), 7, 0)
        self._session.write(list(self.mirror.writes(self.view, {"t": None}, 7)))

    def decide(self, **config: str) -> None:
        self.view.apply(topic(**config))

    def put(self, path: str = CONFIG, **config: str) -> None:
        self.tree.put(path, json.dumps({"version": 1, "config": config}).encode())

    @property
    def held(self) -> dict[str, str]:
        return znodes.config_of(CONFIG, self.tree.znodes[CONFIG].data)

    def run(self, engine: SlowEngine, work: Callable[[BrokerWrites], Awaitable[None]]) -> None:
        async def call(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
            return call(*given, **named)

        async def write(changes: Changes) -> None:
            self.writes.hold_back()
            self._session.write(list(self.mirror.writes(self.view, changes, 7)))

        asked = cast(EngineClient, engine)
        self.writes = BrokerWrites(frozenset({100}), asked, self.view, self.mirror, self._session, call, write)
        asyncio.run(asyncio.wait_for(work(self.writes), TIMEOUT_S))

    def publish(self) -> None:
        """Write what is decided by now, as a term does after each decision."""
        self.writes.hold_back()
        self._session.write(list(self.mirror.writes(self.view, {"t": None}, 7)))


def test_settings_are_asked_for_until_the_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    term = Term(monkeypatch)
    engine = SlowEngine(lambda: None, lambda: None, lambda: "NONE")
    term.put(a="2")
    term.run(engine, lambda writes: writes.alter_config("t"))
    assert engine.asked == [{"a": "2"}] * 3


def test_nothing_is_written_over_settings_that_are_not_decided_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    term = Term(monkeypatch)

    def another_leader() -> None:
        term.view.apply(led(2, 1, 1))
        term.publish()
        assert term.held == {"a": "2"}

    def decided() -> str:
        term.decide(a="2")
        term.publish()
        return "NONE"

    term.put(a="2")
    term.run(SlowEngine(another_leader, decided), lambda writes: writes.alter_config("t"))
    term.publish()
    assert term.held == {"a": "2"}


def test_settings_that_the_engine_refuses_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    term = Term(monkeypatch)
    term.put(a="nonsense")
    term.run(SlowEngine(lambda: None, lambda: "INVALID_CONFIG"), lambda writes: writes.alter_config("t"))
    assert term.held == {"a": "1"}


def test_settings_that_a_broker_takes_back_are_asked_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    term = Term(monkeypatch)

    def taken_back() -> None:
        term.put(a="1")

    term.put(a="2", b="3")
    engine = SlowEngine(taken_back, lambda: "NONE")
    term.run(engine, lambda writes: writes.alter_config("t"))
    assert engine.asked == [{"a": "2", "b": "3"}, {"a": "1", "b": None}], "the engine may have read the first one"


def test_settings_that_change_again_are_asked_for_by_the_same_call(monkeypatch: pytest.MonkeyPatch) -> None:
    term = Term(monkeypatch)
    term.put(a="2")

    async def work(writes: BrokerWrites) -> None:
        await asyncio.gather(writes.alter_config("t"), writes.alter_config("t"))

    def changed() -> str:
        term.decide(a="2")
        term.put(a="3")
        return "NONE"

    def changed_last() -> str:
        term.decide(a="3")
        return "NONE"

    engine = SlowEngine(changed, changed_last)
    term.run(engine, work)
    assert engine.asked == [{"a": "2"}, {"a": "3"}]


def test_settings_of_all_brokers_are_asked_for_until_the_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    term = Term(monkeypatch)
    name = "min.insync.replicas"
    term.put(znodes.BROKER_DEFAULTS, **{name: "2"})

    def removed() -> None:
        term.put(znodes.BROKER_DEFAULTS)

    engine = SlowEngine(lambda: None, removed, lambda: "NONE")
    term.run(engine, lambda writes: writes.follow_defaults())
    assert engine.asked == [{name: "2"}, {name: "2"}, {name: None}]
