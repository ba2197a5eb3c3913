"""Play the load on brokers in ZooKeeper mode: under a controller of Kafka 3.9, or under the engine behind a gateway.

A step ends when the last live broker has been sent the last of what follows from it.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from bench.at_once import at_once
from bench.controllers import Controller
from bench.load import ONE_ISR_RUNS, Load, StepName, Took, median_of
from bench.machine import Meter, idle
from bench.zookeeper_brokers import Told, ZookeeperBrokers
from brokers.gateways.zk.messages import ALTER_PARTITION, CATALOGUE, CONTROLLED_SHUTDOWN, CREATE_TOPICS, SERVED
from brokers.launch.kafka.properties import LOOPBACK
from brokers.wire.catalogue import framed
from brokers.wire.schema import Values
from tests.support.frames import FrameConnection

ANSWER_TIMEOUT_S = 600.0
# A controller of Kafka 3.9 makes the topics of a request one by one.
PARTITIONS_PER_REQUEST = 5_000
ADMINS = 4
_POLL_S = 0.25
# A controller of Kafka 3.9 pauses for seconds between the elections and the ISRs of a lost broker.
_QUIET_S_PER_PARTITION = 1 / 10_000

Place = tuple[str, int]


class ZookeeperController(Controller, Protocol):
    """A running controller that can be killed and started again, and the address of its ZooKeeper."""

    zookeeper: str

    def restart(self) -> None: ...


class ZookeeperDriver:
    """Simulated brokers under ``controller``."""

    # In ZooKeeper mode brokers are not fenced on request, and report no offsets.
    passes_over: frozenset[StepName] = frozenset({"fence", "offsets", "offsets one by one"})

    def __init__(self, controller: ZookeeperController, load: Load) -> None:
        self._controller = controller
        self._load = load
        self._gone = 0
        self._storm: dict[Place, Told] = {}
        self._topic_ids: dict[str, str] = {}
        self._brokers: ZookeeperBrokers | None = None

    def start(self) -> None:
        try:
            self._controller.start()
            self._brokers = ZookeeperBrokers(self._controller.zookeeper, self._load.brokers)
            self._brokers.start()
            self._quiet(0, Meter([]))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._brokers is not None:
            self._brokers.stop()
        self._controller.stop()

    @property
    def _cluster(self) -> ZookeeperBrokers:
        assert self._brokers is not None
        return self._brokers

    def play(self, step: StepName) -> Took:
        match step:
            case "create":
                before = len(self._cluster.heard)
                took = self._played(self._create)
                self._storm = self._chosen(before)
                return took
            case "idle":
                return idle(self._controller.pids, self._load.idle_s)
            case "shrink ISRs":
                return self._played(lambda: self._alter(self._storm, joining=False))
            case "expand ISRs":
                return self._played(lambda: self._alter(self._storm, joining=True))
            case "one ISR":
                return self._one_by_one()
            case "lose":
                self._gone = self._load.victim
                return self._played(lambda: self._cluster.disappear(self._gone))
            case "return":
                return self._played(lambda: self._cluster.appear(self._gone))
            case "shut down":
                return self._played(self._shut_down)
            case "restart":
                return self._played(self._controller.restart)
            case _:
                raise ValueError(f"{step} is not for brokers in ZooKeeper mode")

    def _played(self, cause: Callable[[], None]) -> Took:
        """Do something, and measure the time until the last request that follows from it was sent."""
        before, meter = len(self._cluster.heard), Meter(self._controller.pids)
        began_s = time.monotonic()
        cause()
        spent_s = self._quiet(before, meter)
        news = self._cluster.heard[before:]
        ended_s = news[-1].at_s if news else began_s
        changes = len(self._cluster.metadata(self._load.straggler, before))
        return Took(wall_s=ended_s - began_s, cpu_s=spent_s, changes=changes)

    def _quiet(self, before: int, meter: Meter) -> float:
        """Wait until brokers hear nothing more. Return the CPU that was used until then."""
        quiet_s = self._load.quiet_s + self._load.partitions * _QUIET_S_PER_PARTITION
        measured, last_s, count = meter.spent_s(), time.monotonic(), before
        while count == before or time.monotonic() - last_s < quiet_s:
            if time.monotonic() - last_s > ANSWER_TIMEOUT_S:
                raise TimeoutError(f"brokers were told nothing for {ANSWER_TIMEOUT_S:.0f} s")
            if len(self._cluster.heard) > count:
                count = len(self._cluster.heard)
                measured, last_s = meter.spent_s(), time.monotonic()
            time.sleep(_POLL_S)
        return measured

    def _create(self) -> None:
        """Create all topics, by several admins at once, each with one request at a time."""

        def create(topics: list[Values]) -> None:
            given = {"Topics": topics, "timeoutMs": int(ANSWER_TIMEOUT_S * 1_000), "validateOnly": False}
            answer = self._ask(CREATE_TOPICS, **given)
            if refused := [one for one in answer["Topics"] if one["ErrorCode"]]:
                raise RuntimeError(f"not created: {refused[0]}")
            self._topic_ids |= {one["Name"]: one["TopicId"] for one in answer["Topics"]}

        at_once([partial(create, topics) for topics in requests(self._load)], ADMINS)

    def _chosen(self, since: int) -> dict[Place, Told]:
        """Choose the partitions that the straggler will leave: it is in their ISRs, and others lead them."""
        straggler = self._load.straggler
        told = self._cluster.metadata(straggler, since)
        chosen = [(place, one) for place, one in told.items() if straggler in one.isr and one.leader != straggler]
        return dict(chosen[: self._load.storm])

    def _alter(self, places: Iterable[Place], *, joining: bool) -> None:
        """Ask for ISRs with or without the straggler: one request of each leader, all at once."""
        by_leader: dict[int, list[Place]] = defaultdict(list)
        for place in places:
            by_leader[self._storm[place].leader].append(place)
        at_once([partial(self._ask_for, leader, led, joining) for leader, led in by_leader.items()])

    def _ask_for(self, leader: int, places: Sequence[Place], joining: bool) -> None:
        topics: dict[str, list[Values]] = defaultdict(list)
        for topic, number in places:
            topics[topic].append(self._asked((topic, number), joining))
        named = [{"TopicId": self._topic_ids[topic], "Partitions": some} for topic, some in topics.items()]
        epoch = self._cluster.epochs[leader]
        answer = self._ask(ALTER_PARTITION, BrokerId=leader, BrokerEpoch=epoch, Topics=named)
        names = {topic_id: topic for topic, topic_id in self._topic_ids.items()}
        told = [(names[topic["TopicId"]], one) for topic in answer["Topics"] for one in topic["Partitions"]]
        for topic, one in told:
            if one["ErrorCode"]:
                raise RuntimeError(f"an ISR was refused: {one}")
            self._storm[topic, one["PartitionIndex"]] = Told(
                leader, one["LeaderEpoch"], tuple(one["Isr"]), one["PartitionEpoch"]
            )
        if answer["ErrorCode"] or len(told) < len(places):
            raise RuntimeError(f"ISRs were refused: {answer['ErrorCode']}")

    def _asked(self, place: Place, joining: bool) -> Values:
        held = self._storm[place]
        isr = [broker for broker in held.isr if broker != self._load.straggler]
        isr += [self._load.straggler] if joining else []
        return {
            "PartitionIndex": place[1],
            "LeaderEpoch": held.leader_epoch,
            "PartitionEpoch": held.partition_epoch,
            "NewIsrWithEpochs": [{"BrokerId": one, "BrokerEpoch": self._cluster.epochs[one]} for one in isr],
            "LeaderRecoveryState": 0,
        }

    def _one_by_one(self) -> Took:
        """Shrink the ISRs of partitions one after another, each until its answer. Return the medians."""
        took, before = [], len(self._cluster.heard)
        for place in list(self._storm)[:: self._load.partitions_per_topic][:ONE_ISR_RUNS]:
            began_s, meter = time.monotonic(), Meter(self._controller.pids)
            self._alter([place], joining=False)
            took.append(Took(wall_s=time.monotonic() - began_s, cpu_s=meter.spent_s(), changes=1))
        self._quiet(before, Meter([]))
        return median_of(took)

    def _shut_down(self) -> None:
        broker = self._load.shut_down
        self._gone = broker
        answer = self._ask(CONTROLLED_SHUTDOWN, BrokerId=broker, BrokerEpoch=self._cluster.epochs[broker])
        if answer["ErrorCode"]:
            raise RuntimeError(f"the shutdown was refused: {answer}")

    def _ask(self, api_key: int, **values: Any) -> Values:
        connection = FrameConnection(LOOPBACK, self._controller.port, ANSWER_TIMEOUT_S)
        try:
            connection.send_bytes(framed(CATALOGUE.encode_request(api_key, SERVED[api_key][1], 1, "bench", values)))
            return CATALOGUE.decode_response(api_key, SERVED[api_key][1], connection.frame()).values
        finally:
            connection.close()


def requests(load: Load) -> Iterator[list[Values]]:
    """Divide the topics into requests that name the replicas, because a stock controller is itself a broker."""
    request: list[Values] = []
    count = 0
    for nth, (topic, size) in enumerate(load.topics):
        if request and count + size > PARTITIONS_PER_REQUEST:
            yield request
            request, count = [], 0
        in_turn = [
            [1 + (nth + number + at) % load.brokers for at in range(load.replication_factor)] for number in range(size)
        ]
        replicas = load.assignment(topic, size) or in_turn
        assignments = [{"PartitionIndex": number, "BrokerIds": ids} for number, ids in enumerate(replicas)]
        sizes = {"NumPartitions": -1, "ReplicationFactor": -1}
        request.append({"Name": topic, **sizes, "Assignments": assignments, "Configs": []})
        count += size
    yield request
