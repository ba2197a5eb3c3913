"""Play a story with brokers of real Kafka: they die, come back and are asked, and what is told of partitions is shown.

What the brokers do by themselves (register, heartbeat, answer) differs from a script's events, so only lines about
partitions are told: who leads, in which epochs, who is in sync, and to whom it is said. Leaders ask for larger ISRs
by themselves too, so a block that only does that is one with the block before; they write an ISR in an order of
their own, so members are told in rising order.
"""

import json
import re
import time
from collections.abc import Callable

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.scenarios.arguments import ids, partition_of, settings_in
from tests.scenarios.picture import partition_lines
from tests.scenarios.rendering import Rendering
from tests.scenarios.story import Block, Command, Story
from tests.support.mock_cluster import wait_until
from tests.support.real_cluster import RealCluster

SETTLE_TIMEOUT_S = 60.0
# Nothing more may come of a block once what was expected has.
QUIET_S = 0.7
ASK_TIMEOUT_S = 30
_OF_A_PARTITION = re.compile(r"[A-Za-z0-9._-]+-\d+ ")
_ISRS = re.compile(r"(isr[ =])(\d+(?:,\d+)*(?: -> \d+(?:,\d+)*)?)")
_TYPES = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}
_LISTED = 100_000

Word = Callable[["ByBrokers", Command], None]


def about_partitions(text: str) -> list[str]:
    """Keep the lines of a block's text that tell of partitions, with the members of ISRs in rising order."""
    lines = [line for line in text.splitlines() if _OF_A_PARTITION.match(line)]
    return [_ISRS.sub(lambda isr: isr[1] + " -> ".join(map(_rising, isr[2].split(" -> "))), line) for line in lines]


def _rising(members: str) -> str:
    return ",".join(map(str, sorted(ids(members))))


def merged(story: Story) -> list[Block]:
    """Join blocks in which leaders ask for ISRs to the ones before."""
    blocks: list[Block] = []
    for block in story.blocks:
        if {command.word for command in block.commands} == {"isr-change"}:
            former = blocks.pop()
            blocks.append(Block(former.lines, f"{former.expected}\n{block.expected}"))
        else:
            blocks.append(block)
    return blocks


class ByBrokers:
    """Hold a cluster of real brokers, and the topics that a story has made there."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self._rendering = Rendering()
        self._topics: list[str] = []
        self._described: list[str] = []
        self._next = self._rendering

    def tell(self, story: Story) -> list[list[str]]:
        """Give what came of each block, as far as it tells of partitions."""
        return [self._play(block) for block in merged(story)]

    def _play(self, block: Block) -> list[str]:
        after = (self._cluster.bus.decided_seq(), _LISTED)
        self._described = []
        introduced: list[str] = []
        for command in block.commands:
            WORDS[command.word](self, command)
            if command.word == "topic":
                introduced.append(command.arguments[0])
        quiet = bool(introduced)
        expected = about_partitions(block.expected)

        def told() -> list[str]:
            rendering = Rendering()
            rendering.partitions = dict(self._rendering.partitions)
            decided = self._cluster.bus.decisions(after, _LISTED)
            lines = [line for one in decided for line in rendering.tell(one.body, quiet=quiet)]
            lines = [line for line in about_partitions("\n".join(lines)) if self._is_ours(line)]
            shown = [*introduced, *self._described]
            if shown:
                names = self._topics if "" in shown else shown
                lines += about_partitions("\n".join(partition_lines(self._cluster.view(), names)))
            self._next = rendering
            return lines

        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while told() != expected and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(QUIET_S)
        lines = told()
        self._rendering = self._next
        return lines

    def _is_ours(self, line: str) -> bool:
        return partition_of(line.split()[0])[0] in self._topics

    def clear(self) -> None:
        """Bring all brokers back, and take away what the story made."""
        for number, node in self._cluster.kafka.nodes.items():
            if node.state == "stopped":
                self._cluster.restart(number)
        for future in self._admin.delete_topics(self._topics).values() if self._topics else ():
            future.exception(ASK_TIMEOUT_S)
        wait_until(
            lambda: not {held["topic"] for held in self._cluster.view()["topics"]} & set(self._topics),
            "the story's topics to be gone",
        )

    # Words

    def brokers(self, command: Command) -> None:
        assert set(map(int, command.arguments)) <= set(self._cluster.kafka.nodes)

    def topic(self, command: Command) -> None:
        name, *listed = command.arguments
        self._topics.append(name)
        new = NewTopic(
            name, len(listed), replica_assignment=[ids(text) for text in listed], config=settings_in(command.options)
        )
        self._admin.create_topics([new])[name].result(ASK_TIMEOUT_S)

    def silence(self, command: Command) -> None:
        for broker in map(int, command.arguments):
            self._cluster.broker(broker).kill()

    def tick(self, command: Command) -> None:
        """Let time pass: it does."""

    def restart(self, command: Command) -> None:
        broker = int(command.arguments[0])
        self._cluster.broker(broker).kill()
        self._cluster.restart(broker)

    def elect(self, command: Command) -> None:
        kind, *named = command.arguments
        partitions = None if named == ["all"] else [TopicPartition(*partition_of(text)) for text in named]
        self._admin.elect_leaders(_TYPES[kind], partitions).result(ASK_TIMEOUT_S)

    def config(self, command: Command) -> None:
        _, name = command.arguments
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in settings_in(command.options).items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(ASK_TIMEOUT_S)

    def create_partitions(self, command: Command) -> None:
        name, total, *listed = command.arguments
        fields = {"replica_assignment": [ids(text) for text in listed]} if listed else {}
        self._admin.create_partitions([NewPartitions(name, int(total), **fields)])[name].result(ASK_TIMEOUT_S)

    def reassign(self, command: Command) -> None:
        name, number = partition_of(command.arguments[0])
        listed = [{"topic": name, "partition": number, "replicas": ids(command.arguments[1])}]
        plan = self._cluster.directory / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": listed}))
        self._cluster.tool("reassign.ReassignPartitionsCommand", f"--execute --reassignment-json-file {plan}")

    def describe(self, command: Command) -> None:
        self._described += [name for name in command.arguments or ("",) if name != "brokers"]


_ALL: tuple[Word, ...] = (
    ByBrokers.brokers,
    ByBrokers.topic,
    ByBrokers.silence,
    ByBrokers.tick,
    ByBrokers.restart,
    ByBrokers.elect,
    ByBrokers.config,
    ByBrokers.create_partitions,
    ByBrokers.reassign,
    ByBrokers.describe,
)
WORDS = {word.__name__.replace("_", "-"): word for word in _ALL}
