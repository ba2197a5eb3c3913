"""Operators see the same of a led cluster as of one of stock Kafka. Where they do not, the script says why."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from brokers.launch.kafka.cluster import KafkaCluster, plain_specs
from brokers.launch.kafka.preparing import prepare_tools
from brokers.launch.kafka.tools import CONFIGS, ToolError, run_tool
from tests.real_kafka.stock.operations import MOVES, PLAN, SCRIPT, Call, Tool
from tests.support.real_cluster import AUTHORIZER, LOOPBACK, OVERRIDES, RealCluster, led_by_rules

pytestmark = pytest.mark.kraft
ACCESS = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
ENGINES_OWN = "unclean.leader.election.enable=false"
SETTINGS = {"auto.leader.rebalance.enable": "false"}
AGREE_TIMEOUT_S, AGAIN_S = 30.0, 0.2
# What differs between any two clusters: addresses, ids of topics and clusters, epochs of features.
OWN = [
    (re.compile(rf"{LOOPBACK}:\d+"), "<address>"),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "<id>"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r'("port"|"finalized_epoch"|Epoch): \d+'), r"\1: 0"),
    # Messages are free. Errors are not.
    (re.compile(r"(\[Error \d+\] \w+): [^\"]*"), r"\1"),
]
Operation = Tool | Call


class Player:
    """An operator of one cluster, who shows what operators see."""

    def __init__(self, bootstrap: str, plan: Path) -> None:
        self._bootstrap = bootstrap
        self._plan = plan
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))

    def close(self) -> None:
        self._admin.close()

    def set_as_the_engine_does(self) -> None:
        """The engine has a setting of its own for all brokers, and no eligible leader replicas."""
        self._run(Tool(CONFIGS, "--alter --entity-type brokers --entity-default --add-config " + ENGINES_OWN))
        self._admin.update_features({"eligible.leader.replicas.version": ("SAFE_DOWNGRADE", 0)})

    def do(self, operation: Operation) -> str:
        shown = self._run(operation) if isinstance(operation, Tool) else self._ask(operation)
        for own, instead in OWN:
            shown = own.sub(instead, shown)
        return shown

    def _run(self, tool: Tool) -> str:
        arguments = tool.arguments.replace(PLAN, str(self._plan)).split()
        try:
            said = run_tool(tool.name, self._bootstrap, arguments)
        except ToolError as error:
            return "\n".join(sorted({*re.findall(r"\w+Exception\b", str(error))}))
        return "\n".join(sorted(said.split("\n")))

    def _ask(self, call: Call) -> str:
        try:
            answer = call.ask(self._admin)
        except KafkaError as error:
            return type(error).__name__
        return json.dumps(_plain(answer), sort_keys=True, default=_named)


def _named(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def _plain(answer: Any) -> Any:
    """Show an answer without messages, which are free, and without orders that mean nothing."""
    match answer:
        case dict():
            return {str(name): _plain(value) for name, value in answer.items() if name != "error_message"}
        case list() | tuple() | set() | frozenset():
            return sorted((_plain(one) for one in answer), key=str)
        case _ if hasattr(answer, "to_dict"):
            return _plain(answer.to_dict())
    return answer


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Operation, str, str]]]:
    folder: Path = tmp_path_factory.mktemp("stock")
    prepare_tools()
    plan = folder / "plan.json"
    plan.write_text(json.dumps(MOVES))
    stock = KafkaCluster.create(folder / "stock", plain_specs(3, overrides=OVERRIDES | ACCESS | SETTINGS, heap="256m"))
    led = RealCluster(folder / "led", gateway_settings=ACCESS | {"allow.authorizer.on.plaintext": "true"}, **ACCESS)
    with led_by_rules(led, auto_leader_rebalance_enable=False):
        try:
            stock.up()
            players = Player(stock.bootstrap, plan), Player(led.bootstrap, plan)
            players[0].set_as_the_engine_does()
            yield [(operation, *_both(operation, *players)) for operation in SCRIPT]
            for player in players:
                player.close()
        finally:
            stock.kill()


def _both(operation: Operation, stock: Player, led: Player) -> tuple[str, str]:
    """Do the same to both clusters. Brokers need a moment to hear of a change, so what only reads is done again."""

    def is_settled() -> bool:
        return operation.differs != "" or (both[0] == both[1] and operation.until in both[0])

    both = stock.do(operation), led.do(operation)
    ends_s = time.monotonic() + AGREE_TIMEOUT_S
    while operation.reads and not is_settled() and time.monotonic() < ends_s:
        time.sleep(AGAIN_S)
        both = stock.do(operation), led.do(operation)
    return both


def test_operators_see_the_same(seen: list[tuple[Operation, str, str]]) -> None:
    differ = [(operation, *both) for operation, *both in seen if not operation.differs and both[0] != both[1]]
    assert not differ, "\n".join(
        f"{operation}\n  Kafka: {theirs}\n  led:   {ours}" for operation, theirs, ours in differ
    )


def test_what_the_script_waits_for_came(seen: list[tuple[Operation, str, str]]) -> None:
    assert not [(operation, theirs) for operation, theirs, _ in seen if operation.until not in theirs]


def test_each_listed_difference_is_one(seen: list[tuple[Operation, str, str]]) -> None:
    assert not [operation for operation, theirs, ours in seen if operation.differs and theirs == ours]
