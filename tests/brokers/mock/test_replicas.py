"""All replicas of a broker: refused decisions and their reports, and requests for ISR changes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from brokers.mock.apis import produce
from brokers.mock.apis.context import Context
from brokers.mock.control.outbox import Outbox
from brokers.mock.log.directory import LogDirectory
from brokers.mock.messages import PRODUCE
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.partition import Role
from brokers.mock.replicas.table import Replicas
from brokers.mock.replicas.waiting import Purgatory, Waiters, wake
from brokers.mock.settings import settings_of
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode
from bus.embedded import EmbeddedBus
from state.decisions import Answer, AnyDecision, ConfigDecision, HighWatermark, TopicDecision
from state.reason import Reason
from tests.brokers.mock.test_coalesce import STOP
from tests.brokers.mock.test_control import heartbeat_answer, refusal_of
from tests.brokers.mock.test_partition import PLACE, decided_leader
from tests.support.batches import batch

BROKER = 1
SETTINGS = {"replica.lag.time.max.ms": 1, "alter.isr.timeout.ms": 80, "alter.isr.backoff.ms": 80}


class Clock:
    """The steady clock of a broker's replicas. It stands still until a scene lets time pass."""

    now_ms = 1_000


class Host(NamedTuple):
    """A broker's replicas, and the bus that they report to."""

    replicas: Replicas
    metadata: Metadata
    directory: LogDirectory
    outbox: Outbox
    bus: EmbeddedBus
    clock: Clock

    async def published(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind that were published so far."""
        await self.outbox.flush()
        events = [json.loads(entry.raw) for entry in self.bus.read(0, self.bus.last_seq())]
        return [event for event in events if event["kind"] == kind]


Play = Callable[[Callable[[Host], Any]], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Run a scene with the replicas of broker 1, in its own event loop."""
    clock = Clock()
    for module in ("isr", "table"):
        monkeypatch.setattr(f"brokers.mock.replicas.{module}.steady_ms", lambda: clock.now_ms)

    async def played(scene: Callable[[Host], Any]) -> None:
        bus, settings = EmbeddedBus(tmp_path / "bus.db"), settings_of(SETTINGS)
        outbox = Outbox(BROKER, bus, settings)
        metadata, directory = Metadata(), LogDirectory(tmp_path / "1")
        replicas = Replicas(BROKER, directory, metadata, outbox, settings)
        replicas.set_broker_epoch(7)
        try:
            await scene(Host(replicas, metadata, directory, outbox, bus, clock))
        finally:
            await replicas.fetchers.stop()
            replicas.close()
            outbox.close()
            bus.close()

    return lambda scene: asyncio.run(played(scene))


@pytest.mark.parametrize(
    ("decision", "error"),
    [
        (replace(decided_leader(1, 9), controller_epoch=1), "STALE_CONTROLLER_EPOCH"),
        (replace(STOP, controller_epoch=1, leader_epoch=9), "STALE_CONTROLLER_EPOCH"),
        (replace(decided_leader(1, 3), controller_epoch=2), "STALE_CONTROLLER_EPOCH"),
        (replace(decided_leader(1, 4, 3), controller_epoch=2), "STALE_CONTROLLER_EPOCH"),
        (replace(decided_leader(2, 9, replicas=(2, 3), isr=(2, 3)), controller_epoch=2), "UNKNOWN_TOPIC_OR_PARTITION"),
        (replace(STOP, controller_epoch=2, leader_epoch=3), "FENCED_LEADER_EPOCH"),
    ],
    ids=["controller", "controller-stop", "leader-epoch", "partition-epoch", "no-replica", "stop"],
)
def test_a_refused_decision_is_reported_and_changes_nothing(play: Play, decision: AnyDecision, error: str) -> None:
    """The error codes are those of ReplicaManager's responses to LeaderAndIsr and StopReplica, by partition."""

    async def scene(host: Host) -> None:
        host.replicas.apply(replace(decided_leader(2, 4), controller_epoch=2))
        before = host.replicas.partitions[PLACE]
        host.replicas.apply(decision)
        held = host.replicas.partitions[PLACE]
        assert (held is before, held.role, held.leader_epoch) == (True, Role.follower, 4)
        done, refused = await host.published("replica_report")
        assert (done["outcome"], done["leader_epoch"], done["broker_epoch"]) == ("follower", 4, 7)
        assert (done["topic_id"], refused["topic_id"]) == (before.topic_id, decision.topic_id)  # type: ignore[union-attr]
        said = ("error", error, decision.leader_epoch)  # type: ignore[union-attr]
        assert (refused["outcome"], refused["error"], refused["leader_epoch"]) == said

    play(scene)


def test_a_stale_decision_for_other_brokers_is_not_reported(play: Play) -> None:
    async def scene(host: Host) -> None:
        host.replicas.apply(replace(decided_leader(2, 4), controller_epoch=2))
        host.replicas.apply(replace(decided_leader(2, 5), controller_epoch=1, to=(2, 3)))
        assert len(await host.published("replica_report")) == 1

    play(scene)


def test_a_deletion_is_obeyed_in_any_epoch(play: Play) -> None:
    """KIP-570: -2 stands above all leader epochs."""

    async def scene(host: Host) -> None:
        host.replicas.apply(decided_leader(2, 4))
        host.replicas.apply(replace(STOP, leader_epoch=-2))
        assert host.replicas.partitions == {}
        assert [report["outcome"] for report in await host.published("replica_report")] == ["follower", "deleted"]

    play(scene)


def test_a_refused_report_is_sent_again_if_it_is_still_true(play: Play) -> None:
    """Otherwise a topic's deletion would wait for ever, because its report was refused."""

    async def scene(host: Host) -> None:
        host.replicas.apply(decided_leader(1, 4))
        host.replicas.apply(replace(STOP, leader_epoch=-2))
        await host.published("replica_report")
        for entry in host.bus.read(0, host.bus.last_seq()):
            host.outbox.apply(refusal_of(entry.raw))
        host.outbox.apply(heartbeat_answer("NONE"))
        sent = [(report["outcome"], report["leader_epoch"]) for report in await host.published("replica_report")]
        assert sent == [("leader", 4), ("deleted", -2), ("deleted", -2)]
        host.outbox.apply(refusal_of(host.bus.read(0, host.bus.last_seq())[-1].raw))
        host.replicas.apply(decided_leader(1, 6))
        host.outbox.apply(heartbeat_answer("NONE"))
        outcomes = [report["outcome"] for report in await host.published("replica_report")]
        assert outcomes == ["leader", "deleted", "deleted", "leader"], "the broker has the replica again"

    play(scene)


def test_a_replica_that_cannot_be_opened_is_offline_and_the_others_go_on(play: Play) -> None:
    """The longest name that a topic may have leaves room for a partition number of five digits."""

    async def scene(host: Host) -> None:
        other = replace(decided_leader(1, 4), topic="a" * 249, partition=100_000)
        host.replicas.apply(other)
        host.replicas.apply(decided_leader(1, 4))
        assert [report["outcome"] for report in await host.published("replica_report")] == ["offline", "leader"]
        assert (list(host.replicas.partitions), host.directory.is_lost) == ([PLACE], False)

    play(scene)


def test_a_new_registration_repeats_log_ends_and_roles(play: Play) -> None:
    """The engine forgets both when it unregisters a broker. Without log ends the high watermark stands still."""

    async def scene(host: Host) -> None:
        host.replicas.apply(decided_leader(1, 4))
        host.replicas.apply(replace(decided_leader(2, 3), partition=1))
        await host.published("replica_report")
        for _ in range(2):
            host.replicas.set_broker_epoch(8)
        ends, reports = await host.published("log_end_offset"), await host.published("replica_report")
        assert [(end["partition"], end["broker_epoch"]) for end in ends] == [(0, 7), (0, 8)]
        said = [(one["partition"], one["outcome"], one["leader_epoch"], one["broker_epoch"]) for one in reports]
        roles = [(0, "leader", 4), (1, "follower", 3)]
        assert said == [(*role, epoch) for epoch in (7, 8) for role in roles]

    play(scene)


def test_settings_reach_logs_that_are_open(play: Play) -> None:
    async def scene(host: Host) -> None:
        said = {"controller_epoch": 1, "seq": 1, "time_ms": 0, "reason": Reason.CONFIG_CHANGED}
        host.metadata.apply(TopicDecision(**said, topic=PLACE.topic, topic_id="id", state="created", config={}))
        host.replicas.apply(decided_leader(1, 4))
        log = host.replicas.partitions[PLACE].log
        of_cluster = ConfigDecision(**said, entity="cluster", name=None, config={"message.max.bytes": "1000"})
        of_topic = ConfigDecision(**said, entity="topic", name=PLACE.topic, config={"max.message.bytes": "2000"})
        for decision, largest in ((of_cluster, 1_000), (of_topic, 2_000)):
            host.metadata.apply(decision)
            host.replicas.apply(decision)
            assert log.config.max_message_bytes == largest

    play(scene)


def answered(requests: dict[str, Any], error: str) -> Answer:
    common = {"seq": 1, "controller_epoch": 1, "time_ms": 0, "reason": Reason.REQUEST_REFUSED}
    return Answer(**common, request_id=requests["request_id"], request="alter_isr", error=error, message="")


def test_one_isr_change_is_in_flight_and_is_retried(play: Play) -> None:
    """A change counts as lost after alter.isr.timeout.ms. One that is refused is asked for again after a pause."""

    async def scene(host: Host) -> None:
        replicas = host.replicas
        replicas.apply(decided_leader(1, 4))
        replicas.partitions[PLACE].append_as_leader(batch(b"x"))
        host.clock.now_ms += 10
        for _ in range(3):
            replicas.look_after_isr()
        (first,), (end,) = await host.published("alter_isr"), await host.published("log_end_offset")
        assert (first["isr"], first["leader_epoch"], first["partition_epoch"]) == ([1], 4, 4)
        assert first["topic_id"] == end["topic_id"] == replicas.partitions[PLACE].topic_id
        host.clock.now_ms += 100
        replicas.look_after_isr()
        _, second = await host.published("alter_isr")
        assert second["request_id"] != first["request_id"]
        replicas.apply(answered(second, "NOT_CONTROLLER"))
        replicas.look_after_isr()
        assert len(await host.published("alter_isr")) == 2, "a refused one is retried after a pause"
        host.clock.now_ms += 100
        replicas.look_after_isr()
        assert len(await host.published("alter_isr")) == 3

    play(scene)


def test_a_decided_change_lets_the_next_one_be_sent(play: Play) -> None:
    async def scene(host: Host) -> None:
        replicas = host.replicas
        replicas.apply(decided_leader(1, 4))
        replicas.partitions[PLACE].append_as_leader(batch(b"x"))
        host.clock.now_ms += 10
        replicas.look_after_isr()
        replicas.apply(decided_leader(1, 4, 5, isr=(1, 2)))
        replicas.look_after_isr()
        requests = await host.published("alter_isr")
        assert [(one["partition_epoch"], one["isr"]) for one in requests] == [(4, [1]), (5, [1])]

    play(scene)


async def produced(host: Host) -> ErrorCode:
    """Produce a record with acks=all, and return the error of the answer."""
    context = Context(BROKER, settings_of(SETTINGS), host.metadata, host.replicas, Purgatory(10))
    entry = {"Index": PLACE.partition, "Records": batch(b"x")}
    topics = [{"Name": PLACE.topic, "PartitionData": [entry]}]
    values = {"Acks": produce.ALL, "TimeoutMs": 5_000, "TopicData": topics}
    answer = await produce.produce(context, Request(PRODUCE, 9, 0, "client", "Produce", values))
    assert answer is not None
    return ErrorCode(answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"])


def test_too_small_an_isr_is_refused_before_and_after_the_append(play: Play) -> None:
    """When the answer is due the record is committed, but the ISR has become too small."""

    async def scene(host: Host) -> None:
        said = {"controller_epoch": 2, "seq": 1, "time_ms": 0, "reason": Reason.TOPIC_CREATED}
        host.replicas.apply(decided_leader(1, 4, isr=(1, 2), replicas=(1, 2, 3)))
        sending = asyncio.create_task(produced(host))
        await asyncio.sleep(0)
        strict = {"min.insync.replicas": "3"}
        topic = TopicDecision(**said, topic=PLACE.topic, topic_id="id", state="created", config=strict)
        host.metadata.apply(topic)
        host.replicas.apply(
            HighWatermark(**said, topic=PLACE.topic, partition=PLACE.partition, leader_epoch=4, high_watermark=1)
        )
        assert await sending == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert await produced(host) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert host.replicas.partitions[PLACE].log.log_end_offset == 1

    play(scene)


def test_the_purgatory_is_bounded() -> None:
    """A request that finds the purgatory full is answered at once; a waiting one is woken by the change."""

    async def scene() -> None:
        purgatory = Purgatory(2)
        place: Waiters = {}
        deadline = asyncio.get_running_loop().time() + 10
        waiting = [asyncio.create_task(purgatory.change([place], deadline)) for _ in range(2)]
        await asyncio.sleep(0)
        assert not await asyncio.wait_for(purgatory.change([place], deadline), 5)
        wake(place)
        assert await asyncio.wait_for(asyncio.gather(*waiting), 5) == [True, True]
        assert place == {}
        soon = asyncio.get_running_loop().time() + 0.01
        assert not await asyncio.wait_for(purgatory.change([place], soon), 5)

    asyncio.run(scene())
