"""Play the load over the protocol of Kafka's brokers, on a controller of stock Kafka or on a gateway."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from bench.at_once import at_once
from bench.controllers import Controller
from bench.load import ONE_ISR_RUNS, Load, StepName, Took, median_of
from bench.machine import Meter, idle
from bench.metadata_reader import MetadataReader
from bench.metadata_records import (
    PARTITION,
    PARTITION_CHANGE,
    Partition,
    ReadBatch,
    partition_in,
    records_in,
    uuid_text,
)
from bench.protocol_brokers import ANSWER_TIMEOUT_S, ProtocolBrokers
from tests.support.controller_client import ControllerClient
from tests.support.waiting import wait_until

# Kafka's controller refuses a request that leads to more records (``MAX_RECORDS_PER_USER_OP``).
RECORDS_PER_REQUEST_MAX = 9_000
ADMINS = 4
# This need not be short, because times come from the reader, and each look at all processes' CPU costs milliseconds.
_POLL_S = 0.25
_QUIET_S_PER_PARTITION = 1 / 40_000
_CHANGES = frozenset({PARTITION, PARTITION_CHANGE})


class ProtocolDriver:
    """Simulated brokers under ``controller``. One of them fetches the metadata log for all."""

    # Real brokers report no offsets to their controller, and only the engine's restart is measured.
    passes_over: frozenset[StepName] = frozenset({"offsets", "offsets one by one", "restart"})

    def __init__(self, controller: Controller, load: Load) -> None:
        self._controller = controller
        self._load = load
        self._gone = 0
        self._storm: dict[tuple[bytes, int], Partition] = {}

    def start(self) -> None:
        self._controller.start()
        port, cluster_id = self._controller.port, self._controller.cluster_id
        try:
            interval_s = self._load.heartbeat_ms / 1_000
            self._brokers = ProtocolBrokers(port, cluster_id, self._load.brokers, interval_s)
            self._reader = MetadataReader(port, self._load.straggler, cluster_id)
            self._reader.start()
            self._brokers.join_cluster()
        except BaseException:
            self._controller.stop()
            raise
        self._brokers.start()

    def stop(self) -> None:
        self._brokers.stop()
        self._controller.stop()
        self._reader.stop()

    def play(self, step: StepName) -> Took:
        match step:
            case "create":
                took = self._played(self._create)
                self._storm = self._chosen()
                return took
            case "idle":
                return idle(self._controller.pids, self._load.idle_s)
            case "shrink ISRs":
                return self._played(lambda: self._alter(self._storm.values(), joining=False))
            case "expand ISRs":
                return self._played(lambda: self._alter(self._storm.values(), joining=True))
            case "one ISR":
                return self._one_by_one()
            case "lose":
                return self._lost(self._load.victim)
            case "return":
                took = self._played(lambda: self._brokers.beat(self._gone))
                self._brokers.alive.add(self._gone)
                return took
            case "fence":
                self._leaves(self._load.fenced)
                return self._played(lambda: self._brokers.beat(self._gone, want_fence=True))
            case "shut down":
                self._leaves(self._load.shut_down)
                return self._played(lambda: self._brokers.beat(self._gone, want_shut_down=True))
            case _:
                raise ValueError(f"{step} is not for brokers")

    def _leaves(self, broker: int) -> None:
        self._gone = broker
        self._brokers.leave([broker])

    def _played(self, cause: Callable[[], Any]) -> Took:
        """Do something, and measure the time until the last record that follows from it was read."""
        place, meter = self._reader.count(), Meter(self._controller.pids)
        began_s = time.monotonic()
        cause()
        news, spent_s = self._news(place, meter)
        ended_s = news[-1].read_s if news else began_s
        return Took(wall_s=ended_s - began_s, cpu_s=spent_s, changes=_changes(news))

    def _news(self, place: int, meter: Meter) -> tuple[list[ReadBatch], float]:
        """Wait until the reader has read everything from ``place`` on. Return it, and the CPU used until then."""
        quiet_s = self._load.quiet_s + self._load.partitions * _QUIET_S_PER_PARTITION
        news: list[ReadBatch] = []
        measured, last_s = meter.spent_s(), time.monotonic()
        while time.monotonic() - last_s < quiet_s:
            if self._brokers.error is not None:
                raise self._brokers.error
            count = self._reader.count()
            fresh = [batch for batch in self._reader.batches[place:count] if batch.is_news]
            place = count
            if fresh:
                news += fresh
                measured, last_s = meter.spent_s(), time.monotonic()
            time.sleep(_POLL_S)
        return news, measured

    def _lost(self, broker: int) -> Took:
        place = self._reader.count()
        self._leaves(broker)
        ends_s = self._brokers.beat_s[broker] + self._load.session_ms / 1_000
        time.sleep(max(0.0, ends_s - time.monotonic()))
        meter = Meter(self._controller.pids)
        deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
        while not any(batch.is_news for batch in self._reader.batches[place:]):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"broker {broker} was not fenced")
            time.sleep(_POLL_S)
        news, spent_s = self._news(place, meter)
        took_s = news[-1].read_s - ends_s
        return Took(wall_s=took_s, cpu_s=spent_s, changes=_changes(news), session_end_s=took_s)

    def _one_by_one(self) -> Took:
        """Shrink the ISRs of partitions one after another, each until its answer. Return the medians."""
        took, place = [], self._reader.count()
        for held in list(self._storm.values())[:: self._load.partitions_per_topic][:ONE_ISR_RUNS]:
            began_s, meter = time.monotonic(), Meter(self._controller.pids)
            self._alter([held], joining=False)
            took.append(Took(wall_s=time.monotonic() - began_s, cpu_s=meter.spent_s(), changes=1))
        # Otherwise the next step would count these changes.
        wait_until(lambda: _changes(self._reader.batches[place:]) >= len(took), "the ISRs to be read", ANSWER_TIMEOUT_S)
        return median_of(took)

    def _client(self) -> ControllerClient:
        client = ControllerClient(self._controller.port)
        client.wait_at_most(ANSWER_TIMEOUT_S)
        return client

    def _create(self) -> None:
        """Create all topics, by several admins at once, each with one request at a time."""

        def create(topics: list[dict[str, Any]]) -> None:
            client = self._client()
            answer = client.ask("CreateTopics", Topics=topics, timeoutMs=int(ANSWER_TIMEOUT_S * 1_000))
            client.close()
            if refused := [one for one in answer["Topics"] if one["ErrorCode"]]:
                raise RuntimeError(f"not created: {refused[0]}")

        at_once([partial(create, topics) for topics in requests(self._load)], ADMINS)

    def _chosen(self) -> dict[tuple[bytes, int], Partition]:
        """Choose the partitions that the straggler will leave: it is in their ISRs, and others lead them."""
        chosen: dict[tuple[bytes, int], Partition] = {}
        for held in _created(self._reader.batches):
            if self._load.straggler in held.isr and held.leader != self._load.straggler:
                chosen[held.topic_id, held.partition] = held
                if len(chosen) == self._load.storm:
                    break
        return chosen

    def _alter(self, held: Iterable[Partition], *, joining: bool) -> None:
        """Ask for ISRs with or without the straggler: one request of each leader, all at once."""
        by_leader: dict[int, list[Partition]] = defaultdict(list)
        for one in held:
            by_leader[one.leader].append(one)
        at_once([partial(self._ask, leader, led, joining) for leader, led in by_leader.items()])

    def _ask(self, leader: int, led: Sequence[Partition], joining: bool) -> None:
        topics: dict[bytes, list[dict[str, Any]]] = defaultdict(list)
        for one in led:
            topics[one.topic_id].append(self._asked(one, joining))
        client = self._client()
        named = [{"TopicId": uuid_text(topic), "Partitions": some} for topic, some in topics.items()]
        epoch = self._brokers.epochs[leader]
        answer = client.ask("AlterPartition", BrokerId=leader, BrokerEpoch=epoch, Topics=named)
        client.close()
        told = {topic["TopicId"]: topic["Partitions"] for topic in answer["Topics"]}
        for topic in topics:
            for one in told.get(uuid_text(topic), ()):
                if one["ErrorCode"]:
                    raise RuntimeError(f"an ISR was refused: {one}")
                place = topic, one["PartitionIndex"]
                epochs = {"leader_epoch": one["LeaderEpoch"], "partition_epoch": one["PartitionEpoch"]}
                self._storm[place] = self._storm[place]._replace(isr=tuple(one["Isr"]), **epochs)
        if answer["ErrorCode"] or len(told) < len(topics):
            raise RuntimeError(f"ISRs were refused: {answer['ErrorCode']}")

    def _asked(self, held: Partition, joining: bool) -> dict[str, Any]:
        isr = [broker for broker in held.isr if broker != self._load.straggler]
        isr += [self._load.straggler] if joining else []
        return {
            "PartitionIndex": held.partition,
            "LeaderEpoch": held.leader_epoch,
            "PartitionEpoch": held.partition_epoch,
            "NewIsrWithEpochs": [{"BrokerId": one, "BrokerEpoch": self._brokers.epochs[one]} for one in isr],
        }


def requests(load: Load) -> Iterator[list[dict[str, Any]]]:
    """Divide the topics into requests that the controllers accept."""
    request: list[dict[str, Any]] = []
    records = 0
    for topic, size in load.topics:
        if request and records + size + 1 > RECORDS_PER_REQUEST_MAX:
            yield request
            request, records = [], 0
        sizes = {"NumPartitions": size, "ReplicationFactor": load.replication_factor}
        replicas = load.assignment(topic, size)
        if replicas is not None:
            sizes = dict.fromkeys(sizes, -1)
        assignments = [{"PartitionIndex": number, "BrokerIds": ids} for number, ids in enumerate(replicas or ())]
        request.append({"Name": topic, **sizes, "Assignments": assignments, "Configs": []})
        records += size + 1
    yield request


def _created(batches: Iterable[ReadBatch]) -> Iterator[Partition]:
    for batch in batches:
        for kind, message in records_in(batch.data):
            if kind == PARTITION:
                yield partition_in(message)


def _changes(batches: Iterable[ReadBatch]) -> int:
    return sum(kind in _CHANGES for batch in batches for kind, _ in records_in(batch.data))
