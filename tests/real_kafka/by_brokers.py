"""Play a story with brokers of real Kafka, and show the decisions about partitions.

Real brokers register, heartbeat and answer by themselves, so these events differ from a script's. Therefore only
lines about partitions and deleted topics are compared: leader, epochs, ISR, and the brokers addressed. Leaders also
ask for larger ISRs by themselves, and brokers remove logs, so a block that begins with either is joined to the block
before it. Leaders write an ISR in their own order, so its members are shown in rising order.
"""

import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

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
from kafka import TopicPartition as Partition
from kafka.admin import KafkaAdminClient

from tests.scenarios.arguments import ids, partition_of, settings_in
from tests.scenarios.picture import partition_lines
from tests.scenarios.rendering import Rendering
from tests.scenarios.story import Block, Command, Story
from tests.support.real_cluster import RealCluster
from tests.support.waiting import TIMEOUT_S, wait_until

# How long to wait for unexpected lines after all expected ones have come.
QUIET_S = 0.7
POLL_S = 0.05
_OF_A_PARTITION = re.compile(r"[A-Za-z0-9._-]+-\d+ ")
_OF_A_TOPIC_THAT_GOES = re.compile(r"topic (\S+) \(id \d+\) (deleting|ineligible|deleted)")
_ISRS = re.compile(r"(isr[ =])(\d+(?:,\d+)*(?: -> \d+(?:,\d+)*)?)")
_TYPES = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}
_BY_THEMSELVES = ("isr-change", "report")
_LISTED = 100_000

Word = Callable[["ByBrokers", Command], None]


def compared(text: str) -> list[str]:
    """Keep the lines of a block's text that are compared, with the members of ISRs in rising order."""
    lines = []
    for line in text.splitlines():
        if _OF_A_PARTITION.match(line):
            lines.append(_ISRS.sub(lambda isr: isr[1] + " -> ".join(map(_rising, isr[2].split(" -> "))), line))
        elif going := _OF_A_TOPIC_THAT_GOES.match(line):
            lines.append(f"topic {going[1]} {going[2]}")
    return lines


def _rising(members: str) -> str:
    return ",".join(map(str, sorted(ids(members))))


def merged(story: Story) -> list[Block]:
    """Join blocks that begin with what brokers do by themselves to the ones before."""
    blocks: list[Block] = []
    for block in story.blocks:
        if block.commands[0].word in _BY_THEMSELVES:
            former = blocks.pop()
            blocks.append(Block(former.lines + block.lines, f"{former.expected}\n{block.expected}"))
        else:
            blocks.append(block)
    return blocks


def _admin(*addresses: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": ",".join(addresses), "log_level": 0})


class ByBrokers:
    """A cluster of real brokers, and the topics that a story has created there."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self._rendering = Rendering()
        self._topics: list[str] = []
        self._described: list[str] = []
        self._told_up_to = cluster.bus.decided_seq()

    def tell(self, story: Story) -> list[list[str]]:
        """Return the compared lines of each block."""
        blocks = merged(story)
        return [self._play(block, is_last=block is blocks[-1]) for block in blocks]

    def _play(self, block: Block, *, is_last: bool) -> list[str]:
        self._described = []
        introduced: list[str] = []
        for command in block.commands:
            WORDS[command.word](self, command)
            if command.word == "topic":
                introduced.append(command.arguments[0])
        expected = compared(block.expected)
        deadline = time.monotonic() + TIMEOUT_S
        is_quiet = False
        while True:
            read = self._cluster.bus.decisions((self._told_up_to, _LISTED), _LISTED)
            rendering = Rendering()
            rendering.partitions = dict(self._rendering.partitions)
            shown = [line for one in read for line in rendering.tell(one.body, quiet=bool(introduced))]
            lines = [line for line in compared("\n".join(shown)) if self._is_ours(line)]
            lines += self._shown([*introduced, *self._described])
            # At a story's end leaders admit brokers that came back, which no line of the story shows.
            while is_last and len(lines) > len(expected) and " ISR_EXPANDED " in lines[-1]:
                lines.pop()
            is_as_expected = lines == expected
            if (is_as_expected and (is_quiet or not is_last)) or time.monotonic() > deadline:
                break
            is_quiet = is_as_expected
            time.sleep(QUIET_S if is_quiet else POLL_S)
        self._rendering = rendering
        if read:
            self._told_up_to = read[-1].seq
        return lines

    def _ask(self, ask: Callable[[AdminClient], Iterable[Future[Any]]], *, is_sure: bool = True) -> None:
        """Ask with a new client, because an older one would keep asking a broker that died."""
        admin = _admin(*self._cluster.addresses)
        for future in ask(admin):
            if (error := future.exception(TIMEOUT_S)) is not None and is_sure:
                raise error

    def _shown(self, described: list[str]) -> list[str]:
        if not described:
            return []
        names = self._topics if "" in described else described
        return compared("\n".join(partition_lines(self._cluster.view(), names)))

    def _is_ours(self, line: str) -> bool:
        kind, name = line.split()[:2]
        return (name if kind == "topic" else partition_of(kind)[0]) in self._topics

    def clear(self) -> None:
        """Bring all brokers back, and remove what the story created."""
        self._start(broker for broker, state in self._cluster.states().items() if state == "fenced")
        # A story may create a topic again under the same name.
        if topics := list(dict.fromkeys(self._topics)):
            self._ask(lambda admin: admin.delete_topics(topics).values(), is_sure=False)
        wait_until(
            lambda: not {held["topic"] for held in self._cluster.view()["topics"]} & set(self._topics),
            "the story's topics to be gone",
        )

    def _start(self, brokers: Iterable[int]) -> None:
        nodes = [node for broker in brokers if (node := self._cluster.broker(broker)).state == "stopped"]
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_until_started()

    # Words

    def brokers(self, command: Command) -> None:
        self._start(map(int, command.arguments))

    def topic(self, command: Command) -> None:
        name, *listed = command.arguments
        self._create(name, dict(enumerate(map(ids, listed))), command)

    def create_topic(self, command: Command) -> None:
        [name] = command.arguments
        self._create(name, {int(key): ids(text) for key, text in command.options.items() if key.isdecimal()}, command)

    def _create(self, name: str, assignment: dict[int, list[int]], command: Command) -> None:
        self._topics.append(name)
        listed = [assignment[number] for number in range(len(assignment))]
        new = NewTopic(name, len(listed), replica_assignment=listed, config=settings_in(command.options))
        self._ask(lambda admin: admin.create_topics([new]).values())

    def delete_topic(self, command: Command) -> None:
        self._ask(lambda admin: admin.delete_topics(list(command.arguments)).values())

    def silence(self, command: Command) -> None:
        brokers = [int(text) for text in command.arguments]
        for broker in brokers:
            self._cluster.broker(broker).kill()
        self._cluster.wait_for_the_end_of(*brokers)

    connection_lost = silence

    def shutdown(self, command: Command) -> None:
        broker = int(command.arguments[0])
        assert self._cluster.broker(broker).stop(TIMEOUT_S)
        self._cluster.wait_for_the_end_of(broker)

    def rules(self, command: Command) -> None:
        """Decide by the newest rules: the engine does."""

    def tick(self, command: Command) -> None:
        """Do nothing: time passes by itself."""

    def report(self, command: Command) -> None:
        """Do nothing: brokers report by themselves."""

    def restart(self, command: Command) -> None:
        broker = int(command.arguments[0])
        self._cluster.broker(broker).kill()
        self._start([broker])

    def heartbeat(self, command: Command) -> None:
        """Restart a silent broker, or ask one to shut down."""
        (self.shutdown if "want-shutdown" in command.arguments else self.restart)(command)

    def isr_change(self, command: Command) -> None:
        """Wait until a leader has asked for an ISR, as far as its members are still assigned."""
        name, number = partition_of(command.arguments[0])
        wanted = set(ids(command.options["isr"]))

        def has_it() -> bool:
            held = self._cluster.partitions(name)[number]
            return set(held["isr"]) == wanted & set(held["replicas"]) and not held["adding_replicas"]

        wait_until(has_it, f"the ISR of {command.arguments[0]} to be {command.options['isr']}")

    def elect(self, command: Command) -> None:
        kind, *named = command.arguments
        partitions = None if named == ["all"] else [TopicPartition(*partition_of(text)) for text in named]
        self._ask(lambda admin: [admin.elect_leaders(_TYPES[kind], partitions)])

    def config(self, command: Command) -> None:
        _, name = command.arguments
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in settings_in(command.options).items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._ask(lambda admin: admin.incremental_alter_configs([resource]).values())

    def create_partitions(self, command: Command) -> None:
        name, total, *listed = command.arguments
        fields = {"replica_assignment": [ids(text) for text in listed]} if listed else {}
        self._ask(lambda admin: admin.create_partitions([NewPartitions(name, int(total), **fields)]).values())

    def reassign(self, command: Command) -> None:
        self._move(command, ids(command.arguments[1]))

    def cancel(self, command: Command) -> None:
        self._move(command, None)

    def _move(self, command: Command, replicas: list[int] | None) -> None:
        partition: Any = Partition(*partition_of(command.arguments[0]))
        admin = KafkaAdminClient(bootstrap_servers=self._cluster.addresses)
        try:
            assert admin.alter_partition_reassignments({partition: replicas}) == {partition: None}
        finally:
            admin.close()

    def describe(self, command: Command) -> None:
        self._described += [name for name in command.arguments or ("",) if name != "brokers"]


_ALL = (
    "brokers",
    "topic",
    "create_topic",
    "delete_topic",
    "create_partitions",
    "silence",
    "connection_lost",
    "shutdown",
    "rules",
    "tick",
    "report",
    "restart",
    "heartbeat",
    "isr_change",
    "elect",
    "config",
    "reassign",
    "cancel",
    "describe",
)
WORDS: dict[str, Word] = {name.replace("_", "-"): getattr(ByBrokers, name) for name in _ALL}
