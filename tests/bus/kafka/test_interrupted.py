"""Reads and commits of a bus on Kafka that are cut short: nothing is lost, and no other process has to wait."""

import contextlib
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from brokers.launch.kafka.cluster import KafkaCluster
from bus.interface import AFTER_ALL_OF, BusError, Claim, Decided, FencedError, OvertakenError, Page, TrimmedError
from bus.kafka import batches, connection, controller
from bus.kafka.batches import Batches, Bounds
from bus.kafka.bus import KafkaBus
from bus.kafka.connection import Connection
from bus.kafka.controller import Controller
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark
from bus.kafka.transaction import Transaction
from isrflow.kafka.limits import MESSAGE_BYTES_MAX
from isrflow.kafka.seqs import offset_after
from tests.support.commits import readable
from tests.support.waiting import TIMEOUT_S, wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
ALL = 2**62


class StallingConsumer:
    """A consumer whose records come in portions; an empty portion is a fetch that gives nothing."""

    def __init__(self, *portions: list[int]) -> None:
        self._portions = [*portions]
        self._rest: list[Any] = []

    def assign(self, places: list[TopicPartition]) -> None:
        pass

    def poll(self, timeout_s: float) -> Any:
        offsets = self._portions.pop(0) if self._portions else []
        messages = [_message(offset) for offset in offsets]
        self._rest = messages[1:]
        return messages[0] if messages else None

    def consume(self, limit: int, timeout_s: float) -> list[Any]:
        return self._rest


def _message(offset: int) -> Any:
    body = b"%d" % offset
    return SimpleNamespace(
        error=lambda: None,
        offset=lambda: offset,
        key=lambda: b"",
        value=lambda: body,
        headers=list,
        timestamp=lambda: (1, 0),
    )


def test_a_read_that_stalls_loses_no_record_that_came_before() -> None:
    consumer = StallingConsumer([0, 1], [], [], [2])
    connection: Any = SimpleNamespace(
        consumer=lambda **settings: consumer,
        address="kafka://stalled/t",
        errors=contextlib.nullcontext,
        timeout_s=0.0,
    )
    reader = LogReader(connection, "topic")
    reader.seek(0)
    for _ in range(2):
        with pytest.raises(BusError, match="gave nothing after offset 2"):
            reader.take(3, ALL)
        assert reader.next_offset == 0
    assert [record.offset for record in reader.take(3, ALL)] == [0, 1, 2]


@pytest.mark.kafka_bus
def test_kafka_notes_when_events_enter_and_removes_none_by_itself(bus: KafkaBus) -> None:
    topic = ConfigResource(ResourceType.TOPIC, bus.address.events)
    connection = Connection(bus.address)
    events = connection.admin.describe_configs([topic])[topic].result(TIMEOUT_S)
    assert events["message.timestamp.type"].value == "LogAppendTime"
    assert (events["retention.ms"].value, events["retention.bytes"].value) == ("-1", "-1")
    bus.publish([EVENT])
    [entry] = bus.read(0, bus.last_seq())
    assert entry.entered_ms is not None
    assert abs(entry.entered_ms - time.time() * 1000) < 60_000


@pytest.mark.kafka_bus
def test_an_engine_goes_on_after_events_that_kafka_removed_before_they_were_decided(bus: KafkaBus) -> None:
    seqs = [bus.publish([EVENT]) for _ in range(3)]
    Connection(bus.address).delete_records(TopicPartition(bus.address.events, 0, offset_after(seqs[1] or 0)))
    reader = Batches(str(bus.address))
    first = reader.first(0)
    end = reader.plan(first, Bounds(1_000, 1_000_000), defer=False)
    assert [entry.seq for entry in reader.read(first, end)] == [seqs[2]]
    assert bus.kept_after() == seqs[1]
    reader.close()


@pytest.mark.kafka_bus
def test_an_events_topic_that_was_made_again_is_an_error(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "REQUEST_TIMEOUT_S", 0.5)
    bus.publish([EVENT] * 3)
    reader = Batches(str(bus.address))
    end = reader.plan(reader.first(0), Bounds(1_000, 1_000_000), defer=False)
    admin = AdminClient({"bootstrap.servers": bus.address.servers})
    admin.delete_topics([bus.address.events], operation_timeout=TIMEOUT_S)[bus.address.events].result(TIMEOUT_S)
    wait_until(lambda: bus.address.events not in admin.list_topics().topics, "the topic to be gone")
    KafkaBus(str(bus.address)).close()
    bus.publish([EVENT])
    for after in (end, reader.first(end)):
        with pytest.raises(BusError, match="ends at offset 1, but events before offset 3 are decided"):
            reader.plan(after, Bounds(1_000, 1_000_000), defer=False)
    reader.close()


@pytest.mark.kafka_bus
def test_a_job_that_nobody_replaced_goes_on(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "SUCCESSOR_TIMEOUT_S", 0.2)
    claim = bus.claim("job", {}, 1)
    # As when a transaction takes too long, Kafka refuses the producer, and nobody has written a claim.
    same_id = f"{bus.address.prefix}.controller"
    other = Producer({"bootstrap.servers": bus.address.servers, "transactional.id": same_id, "log_level": 0})
    other.init_transactions(TIMEOUT_S)
    bus.commit(claim.controller_epoch, claim.seq, [Decided(claim.seq, 0, b"{}")], [])
    readable(claim.seq, bus)
    assert bus.decisions((0, -1), 9) == [Decided(claim.seq, 0, b"{}")]


@pytest.mark.kafka_bus
def test_of_two_standbys_that_claim_at_once_one_decides(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "SUCCESSOR_TIMEOUT_S", 0.2)
    late = KafkaBus(str(bus.address))
    check, claims = controller.check_not_overtaken, list[Claim]()

    def claimed_after_the_check(claimed: int, after_epoch: int | None, place: object) -> None:
        check(claimed, after_epoch, place)
        if not claims:
            claims.append(Claim(0, 0, 0))
            claims.append(bus.claim("first", {}, 1, 0))

    monkeypatch.setattr(controller, "check_not_overtaken", claimed_after_the_check)
    with pytest.raises(OvertakenError, match="another job claimed controller epoch 1 first"):
        late.claim("late", {}, 1, 0)
    first = claims[-1]
    assert (first.controller_epoch, bus.claimed_epoch(), late.claimed_epoch()) == (1, 1, 1)
    # The late one has fenced the producer of the first one, which opens it again.
    bus.commit(1, first.seq, [Decided(first.seq, 0, b"{}")], [])
    readable(first.seq, bus, late)
    assert late.claim("later", {}, 2, 1).controller_epoch == 2
    with pytest.raises(FencedError, match="controller epoch 2 was claimed"):
        bus.commit(1, bus.publish([EVENT]), [], [])
    late.close()


@pytest.mark.kafka_bus
def test_an_engine_waits_for_a_node_that_was_killed(
    bus: KafkaBus, kafka_node: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a node may be away for longer than any single request may take."""
    claim = bus.claim("job", {}, 1)
    seq = bus.publish([EVENT])
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT_S", 1.0)
    kafka_node.kill()
    restart = threading.Timer(3.0, kafka_node.up)
    restart.start()
    try:
        bus.commit(claim.controller_epoch, seq, [Decided(seq, 0, b"{}")], [])
        later = bus.publish([EVENT])
    finally:
        restart.join(2 * TIMEOUT_S)
    readable(seq, bus)
    assert bus.decisions((0, -1), 9) == [Decided(seq, 0, b"{}")]
    assert [entry.seq for entry in bus.read(seq, bus.last_seq())] == [later]


@pytest.mark.kafka_bus
def test_reading_the_claim_does_not_wait_for_a_commit(bus: KafkaBus) -> None:
    job = Controller(Connection(bus.address))
    claim = job.claim("job", {}, 1)
    commits, may_end = threading.Event(), threading.Event()

    def check(before: Mark) -> None:
        commits.set()
        assert may_end.wait(TIMEOUT_S)

    committing = threading.Thread(target=job.commit, args=(claim.controller_epoch, claim.seq, [], [], check))
    committing.start()
    assert commits.wait(TIMEOUT_S)
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(job.mark().controller_epoch))
    asking.start()
    asking.join(TIMEOUT_S)
    may_end.set()
    committing.join(TIMEOUT_S)
    assert found == [claim.controller_epoch]
    assert job.mark().through == claim.seq
    job.close()


@pytest.mark.kafka_bus
def test_a_follower_that_starts_from_the_state_gets_no_decision_that_the_state_has(bus: KafkaBus) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    bus.commit(epoch, 1, [Decided(1, 0, b"old")], [Page(0, 0, b"old")])
    # It holds back what follows in this topic, as a broker does that is late to write the end of a transaction.
    late = Producer({"bootstrap.servers": bus.address.servers, "transactional.id": bus.address.prefix, "log_level": 0})
    late.init_transactions(TIMEOUT_S)
    late.begin_transaction()
    late.produce(bus.address.decisions, b"")
    assert late.flush(TIMEOUT_S) == 0
    bus.commit(epoch, 2, [Decided(2, 0, b"in the state"), Decided(2, 1, b"too")], [Page(0, 0, b"new")])
    follower = KafkaBus(str(bus.address))
    wait_until(lambda: follower.image().seq == 2, "the state to be readable")
    assert follower.decisions((2, AFTER_ALL_OF), 10) == []
    late.abort_transaction(TIMEOUT_S)
    bus.commit(epoch, 3, [Decided(3, 0, b"news")], [])
    wait_until(lambda: bus.decided_seq() == 3, "the decisions to be readable")
    assert follower.decisions((2, AFTER_ALL_OF), 1) == [Decided(3, 0, b"news")]
    follower.close()


@pytest.mark.kafka_bus
def test_a_follower_that_retention_overtakes_learns_it_at_its_next_attempt(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    for seq in range(1, 6):
        bus.commit(epoch, seq, [Decided(seq, 0, b"x" * 10_000)], [])
    wait_until(lambda: bus.decided_seq() == 5, "the decisions to be readable")
    # It fetches one batch ahead, so it stands behind the others as if it had been frozen.
    consumer = Connection.consumer
    little = {"queued.max.messages.kbytes": 1, "queued.min.messages": 1, "fetch.message.max.bytes": 1}
    monkeypatch.setattr(Connection, "consumer", lambda self, **given: consumer(self, **(given | little)))
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT_S", 5.0)
    follower = KafkaBus(str(bus.address), create=False)
    after = (1, 0)
    assert [one.seq for one in follower.decisions((0, -1), 1)] == [1]
    # The marks of transactions take offsets too.
    Connection(bus.address).delete_records(TopicPartition(bus.address.decisions, 0, 8))
    with pytest.raises(TrimmedError, match="decisions up to \\(4, 0\\) were removed"):
        for _ in range(5):
            with contextlib.suppress(_OutOfRangeError):
                [one] = attempt(follower, after)
                after = (one.seq, one.idx)
    follower.close()


class _OutOfRangeError(Exception):
    """The client fell out of the log. A follower tries again."""


def attempt(follower: KafkaBus, after: tuple[int, int]) -> list[Decided]:
    try:
        return follower.decisions(after, 1)
    except TrimmedError:
        raise
    except BusError as error:
        raise _OutOfRangeError from error


@pytest.mark.kafka_bus
def test_a_job_that_cannot_write_a_batch_resigns_and_holds_nobody_back(bus: KafkaBus) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    follower = KafkaBus(str(bus.address))
    with pytest.raises(BusError, match="size"):
        bus.commit(epoch, 1, [Decided(1, 0, b"small"), Decided(1, 1, bytes(MESSAGE_BYTES_MAX + 1))], [])
    bus.resign(epoch)
    wait_until(lambda: follower.resigned_epoch() == epoch, "the resignation to be readable")
    assert follower.decisions((0, -1), 10) == []
    follower.close()


@pytest.mark.kafka_bus
def test_a_job_writes_again_after_an_abort_that_had_no_answer_in_time(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    with monkeypatch.context() as patched, pytest.raises(BusError, match="size"):
        patched.setattr(Transaction, "abort", lambda self: None)
        bus.commit(epoch, 1, [Decided(1, 0, bytes(MESSAGE_BYTES_MAX + 1))], [])
    bus.commit(epoch, 1, [Decided(1, 0, b"small")], [])
    wait_until(lambda: bus.decided_seq() == 1, "the decisions to be readable")
    assert bus.decisions((0, -1), 10) == [Decided(1, 0, b"small")]
