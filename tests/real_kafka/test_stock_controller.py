"""A gateway answers requests as the controller of stock Kafka does. Where it does not, the script says why.

Both get the same requests from simulated brokers. Messages are free, but where Kafka says something, so does a gateway.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.controllers import StockController
from bench.protocol_brokers import ProtocolBrokers
from state.level import NEWEST_LEVEL
from tests.real_kafka.stock.requests import NO_ID, UNKNOWN_ID, Asked
from tests.real_kafka.stock.script import SCRIPT
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

pytestmark = pytest.mark.kraft
BROKERS = 4
SESSION_MS = 600_000
HEARTBEAT_S = 3.0
# What differs between any two clusters.
OWN = frozenset(
    {"ThrottleTimeMs", "Port", "LogEndOffset", "HighWatermark", "LastFetchTimestamp", "LastCaughtUpTimestamp"}
)


class Player:
    """A client of one controller, which shows its answers without what differs between any two clusters."""

    def __init__(self, port: int, cluster_id: str) -> None:
        self._client = ControllerClient(port)
        self._cluster_id = cluster_id
        self._brokers = ProtocolBrokers(port, cluster_id, BROKERS, HEARTBEAT_S)
        self._ids: dict[str, str] = {}

    def play(self) -> list[Any]:
        try:
            self._brokers.join_cluster()
            self._brokers.start()
            return [self._answer(asked) for asked in SCRIPT]
        finally:
            self._brokers.stop()
            self._client.close()

    def _answer(self, asked: Asked) -> Any:
        answer = self._client.ask(asked.api, **self._filled(asked.values))
        if asked.api == "CreateTopics":
            created = (one for one in answer["Topics"] if one["TopicId"] != NO_ID)
            self._ids |= {one["Name"]: one["TopicId"] for one in created}
        return self._shown(answer)

    def _filled(self, values: Any) -> Any:
        match values:
            case dict():
                return {name: self._filled(value) for name, value in values.items()}
            case list():
                return [self._filled(one) for one in values]
            case str() if values.startswith("<id "):
                return self._ids.get(values[4:-1], UNKNOWN_ID)
            case str() if values.startswith("<epoch "):
                return self._brokers.epochs[int(values[7:-1])]
        return values

    def _shown(self, values: Any) -> Any:
        names = {topic_id: f"<id {name}>" for name, topic_id in self._ids.items()} | {self._cluster_id: "<cluster>"}
        match values:
            # The engine's own settings count as those of all brokers, where Kafka's controller has defaults.
            case {"ConfigSource": 3}:
                return self._shown(values | {"ConfigSource": 5})
            case dict():
                return {name: self._shown(value) for name, value in values.items() if name not in OWN}
            case list() | tuple():
                shown = [self._shown(one) for one in values]
                # Kafka answers many requests in the order of a hash map.
                return sorted(shown, key=_key) if shown and isinstance(shown[0], dict) else shown
            case str():
                return names.get(values, values)
        return values


def _key(shown: dict[str, Any]) -> str:
    return json.dumps(_without_messages(shown), sort_keys=True)


def _without_messages(shown: Any) -> Any:
    match shown:
        case dict():
            return {name: _without_messages(value) for name, value in shown.items() if name != "ErrorMessage"}
        case list():
            return [_without_messages(one) for one in shown]
    return shown


def _silent(theirs: Any, ours: Any) -> bool:
    """Return whether Kafka explains an error and the gateway does not."""
    match theirs:
        case dict():
            says = bool(theirs.get("ErrorCode")) and bool(theirs.get("ErrorMessage"))
            return (says and not ours["ErrorMessage"]) or any(_silent(theirs[name], ours[name]) for name in theirs)
        case list():
            return any(map(_silent, theirs, ours))
    return False


def _are_alike(theirs: Any, ours: Any) -> bool:
    return _without_messages(theirs) == _without_messages(ours) and not _silent(theirs, ours)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Asked, Any, Any]]]:
    folder: Path = tmp_path_factory.mktemp("stock")
    stock = StockController(folder / "stock", SESSION_MS, "256m")
    try:
        stock.start()
        theirs = Player(stock.port, stock.cluster_id).play()
    finally:
        stock.stop()
    engine = InProcessQuorum(folder / "engine", level=NEWEST_LEVEL)
    try:
        ours = Player(engine.voters[0].port, engine.cluster_id).play()
    finally:
        engine.stop()
    yield list(zip(SCRIPT, theirs, ours, strict=True))


def test_a_gateway_answers_as_kafkas_controller_does(answers: list[tuple[Asked, Any, Any]]) -> None:
    differ = [answer for answer in answers if not answer[0].differs and not _are_alike(*answer[1:])]
    assert not differ, "\n".join(f"{asked}\n  Kafka:   {theirs}\n  gateway: {ours}" for asked, theirs, ours in differ)


def test_each_listed_difference_is_one(answers: list[tuple[Asked, Any, Any]]) -> None:
    alike = [asked for asked, *both in answers if asked.differs and _are_alike(*both)]
    assert not alike
