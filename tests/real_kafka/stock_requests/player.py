"""Play a story with simulated brokers, and show the requests that each of them gets from its controller.

A broker that dies is one whose znode goes, so time does not pass. Brokers answer at once, so reports need no command.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from brokers.gateways.zk import znodes
from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.messages import (
    ALTER_PARTITION,
    ALTER_REASSIGNMENTS,
    CATALOGUE,
    CONTROLLED_SHUTDOWN,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    SERVED,
)
from brokers.wire.catalogue import framed
from brokers.wire.schema import Values
from tests.real_kafka.stock_requests.leading import CONTROLLER
from tests.real_kafka.stock_requests.simulated import Heard, SimulatedBroker
from tests.real_kafka.stock_requests.telling import Known, line, told
from tests.scenarios.arguments import epoch_in, ids, partition_of, settings_in
from tests.scenarios.story import Block, Command, Story
from tests.support.frames import FrameConnection
from tests.support.waiting import TIMEOUT_S, wait_until

PREFERRED, UNCLEAN = 0, 1
TIMEOUT_MS = 30_000
# These commands mean nothing here by themselves.
QUIET = ("tick", "report", "describe", "rules", "offsets")

Word = Callable[["Player", Command], None]


def is_played(block: Block) -> bool:
    """Return whether something is asked or happens in a block."""
    return any(command.word not in QUIET for command in block.commands)


def played(story: Story) -> list[Block]:
    """Return the blocks of a story that are played."""
    return [block for block in story.blocks if is_played(block)]


class Player:
    """Simulated brokers in a ZooKeeper, and a client of the controller at ``port``."""

    def __init__(self, client: KazooClient, port: int) -> None:
        self._client = client
        self._port = port
        self._brokers: dict[int, SimulatedBroker] = {}
        self._topic_ids: dict[str, str] = {}
        self._told_up_to: dict[int, int] = {}
        self._topics: list[str] = []
        self._unanswered: list[FrameConnection] = []
        wait_until(lambda: self._controller() == CONTROLLER, "a controller")

    def do(self, block: Block) -> None:
        """Carry out a block's commands."""
        for command in block.commands:
            if command.word not in QUIET:
                WORDS[command.word](self, command)

    def told(self) -> str:
        """Write the requests that came since ``end_block``."""
        self._learn_topics()
        ports = {number: one.port for number, one in self._brokers.items()} | {CONTROLLER: self._port}
        known = Known(CONTROLLER, self._controller_epoch(), ports, self._topic_ids)
        lines = {
            number: [line(heard, known) for heard in broker.heard[self._told_up_to.get(number, 0) :]]
            for number, broker in self._brokers.items()
        }
        return told(lines)

    def heard(self, *, of_living: bool = False) -> dict[int, list[Heard]]:
        """Return what each broker heard, or each that is alive, unless it heard nothing."""
        brokers = {number: one for number, one in self._brokers.items() if one.lives or not of_living}
        return {number: one.heard for number, one in brokers.items() if one.heard}

    def count(self) -> int:
        return sum(len(broker.heard) for broker in self._brokers.values())

    def end_block(self) -> None:
        """Let ``told`` begin with what comes from now on."""
        self._told_up_to = self._counts()

    def close(self) -> None:
        for connection in self._unanswered:
            connection.close()
        for broker in self._brokers.values():
            broker.stop()

    # What ZooKeeper says

    def _get(self, path: str) -> tuple[bytes, Any]:
        found: tuple[bytes, Any] = self._client.get(path)
        return found

    def _controller(self) -> int | None:
        with suppress(NoNodeError):
            return znodes.controller_of(self._get(znodes.CONTROLLER)[0]).brokerid
        return None

    def _controller_epoch(self) -> int:
        return znodes.epoch_of(self._get(znodes.CONTROLLER_EPOCH)[0])

    def _learn_topics(self) -> None:
        for name in self._topics:
            path = znodes.topic_path(name)
            with suppress(NoNodeError):
                self._topic_ids[name] = str(znodes.topic_of(path, self._get(path)[0]).topic_id)

    # Requests

    def _ask(self, api_key: int, **values: Any) -> Values:
        connection = self._asked(api_key, **values)
        try:
            return CATALOGUE.decode_response(api_key, SERVED[api_key][1], connection.frame()).values
        finally:
            connection.close()

    def _asked(self, api_key: int, **values: Any) -> FrameConnection:
        """Send a request, and return the connection on which the answer comes."""
        connection = FrameConnection("127.0.0.1", self._port, TIMEOUT_S)
        connection.send_bytes(framed(CATALOGUE.encode_request(api_key, SERVED[api_key][1], 1, "story", values)))
        return connection

    # Words

    def brokers(self, command: Command) -> None:
        """Start brokers one by one: each is known to all before the next one comes."""
        for number in map(int, command.arguments):
            self._start(number)

    def _start(self, number: int) -> None:
        broker = self._brokers.setdefault(number, SimulatedBroker(number, self._client))
        before = self._counts()
        broker.start()
        wait_until(lambda: self._all_know(before, lambda live: number in live), f"broker {number} to be known")

    def _counts(self) -> dict[int, int]:
        return {number: len(one.heard) for number, one in self._brokers.items()}

    def _all_know(self, since: dict[int, int], fits: Callable[[set[int]], bool]) -> bool:
        """Return whether each broker that is alive was told since then of live brokers that fit."""
        heard = [one.heard[since[number] :] for number, one in self._brokers.items() if one.lives]
        return all(any(fits(live) for live in map(_live_in, news) if live) for news in heard)

    def topic(self, command: Command) -> None:
        name, *listed = command.arguments
        self._create(name, dict(enumerate(map(ids, listed))), command)
        if "isr" in command.options:
            state = znodes.state_path(Place(name, 0))
            wait_until(lambda: self._client.exists(state), f"{state} to be written")
            self.isr_change(Command("isr-change", (f"{name}-0",), {"isr": command.options["isr"]}, ""))

    def create_topic(self, command: Command) -> None:
        [name] = command.arguments
        self._create(name, {int(key): ids(text) for key, text in command.options.items() if key.isdecimal()}, command)

    def _create(self, name: str, assignment: dict[int, list[int]], command: Command) -> None:
        self._topics.append(name)
        new = {
            "Name": name,
            "NumPartitions": -1,
            "ReplicationFactor": -1,
            "Assignments": [{"PartitionIndex": number, "BrokerIds": listed} for number, listed in assignment.items()],
            "Configs": [{"Name": key, "Value": value} for key, value in settings_in(command.options).items()],
        }
        answer = self._ask(CREATE_TOPICS, Topics=[new], timeoutMs=TIMEOUT_MS, validateOnly=False)
        assert answer["Topics"][0]["ErrorCode"] == 0, answer

    def delete_topic(self, command: Command) -> None:
        topics = [{"Name": name, "TopicId": "A" * 22} for name in command.arguments]
        # Kafka answers once the topic is gone, which here may be after a broker came back.
        self._unanswered.append(self._asked(DELETE_TOPICS, Topics=topics, TimeoutMs=TIMEOUT_MS))

    def create_partitions(self, command: Command) -> None:
        name, total, *listed = command.arguments
        topic = {"Name": name, "Count": int(total), "Assignments": [{"BrokerIds": ids(text)} for text in listed]}
        self._ask(CREATE_PARTITIONS, Topics=[topic], TimeoutMs=TIMEOUT_MS, ValidateOnly=False)

    def silence(self, command: Command) -> None:
        for text in command.arguments:
            self._brokers[int(text)].stop()

    def restart(self, command: Command) -> None:
        """Stop a broker, and start it once all know that it is gone."""
        number = int(command.arguments[0])
        if self._brokers[number].lives:
            before = self._counts()
            self._brokers[number].stop()
            wait_until(
                lambda: self._all_know(before, lambda live: number not in live),
                f"the end of broker {number} to be known",
            )
        self._start(number)

    def heartbeat(self, command: Command) -> None:
        self._start(int(command.arguments[0]))

    def shutdown(self, command: Command) -> None:
        number = int(command.arguments[0])
        answer = self._ask(CONTROLLED_SHUTDOWN, BrokerId=number, BrokerEpoch=self._brokers[number].epoch)
        assert answer["ErrorCode"] == 0, answer

    def elect(self, command: Command) -> None:
        kind, *named = command.arguments
        topics: dict[str, list[int]] = {}
        for name, number in map(partition_of, named):
            topics.setdefault(name, []).append(number)
        listed = [{"Topic": name, "Partitions": numbers} for name, numbers in topics.items()]
        what = {"preferred": PREFERRED, "unclean": UNCLEAN}[kind]
        self._ask(
            ELECT_LEADERS,
            ElectionType=what,
            TopicPartitions=None if named == ["all"] else listed,
            TimeoutMs=TIMEOUT_MS,
        )

    def reassign(self, command: Command) -> None:
        self._move(command, ids(command.arguments[1]))

    def cancel(self, command: Command) -> None:
        self._move(command, None)

    def _move(self, command: Command, replicas: list[int] | None) -> None:
        name, number = partition_of(command.arguments[0])
        topics = [{"Name": name, "Partitions": [{"PartitionIndex": number, "Replicas": replicas}]}]
        answer = self._ask(ALTER_REASSIGNMENTS, TimeoutMs=TIMEOUT_MS, Topics=topics)
        assert answer["ErrorCode"] == 0, answer

    def isr_change(self, command: Command) -> None:
        name, number = partition_of(command.arguments[0])
        path = znodes.state_path(Place(name, number))
        data, stat = self._get(path)
        state = znodes.state_of(path, data)
        leader = int(command.options.get("from", state.leader))
        members = [
            {"BrokerId": member, "BrokerEpoch": self._brokers[member].epoch} for member in ids(command.options["isr"])
        ]
        partition = {
            "PartitionIndex": number,
            "LeaderEpoch": epoch_in(command.options.get("leader-epoch"), state.leader_epoch),
            "NewIsrWithEpochs": members,
            "LeaderRecoveryState": 0,
            "PartitionEpoch": epoch_in(command.options.get("partition-epoch"), stat.version),
        }
        self._learn_topics()
        topics = [{"TopicId": self._topic_ids[name], "Partitions": [partition]}]
        self._ask(ALTER_PARTITION, BrokerId=leader, BrokerEpoch=self._brokers[leader].epoch, Topics=topics)


def _live_in(heard: Heard) -> set[int]:
    return {one["Id"] for one in heard.request.values.get("LiveBrokers", ())}


_ALL = (
    "brokers",
    "topic",
    "create_topic",
    "delete_topic",
    "create_partitions",
    "silence",
    "restart",
    "heartbeat",
    "shutdown",
    "elect",
    "reassign",
    "cancel",
    "isr_change",
)
WORDS: dict[str, Word] = {name.replace("_", "-"): getattr(Player, name) for name in _ALL}
