"""The bus on a real Kafka: trimmed events, a dead writer's transaction, unreachable brokers."""

from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bus.interface import BusError, Decided, NoBusError, OvertakenError, Page, TrimmedError
from bus.kafka import connection
from bus.kafka.bus import KafkaBus
from bus.kafka.connection import Connection
from bus.kafka.controller import Controller
from bus.kafka.transaction import Transaction
from bus.open_bus import open_bus
from isrflow.kafka.address import Address, parse
from isrflow.kafka.seqs import SLOTS
from tests.support.waiting import TIMEOUT_S, wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
NOBODY = "127.0.0.1:1"


def remove(bus: KafkaBus, topic: str, through: int) -> None:
    """Delete the topic's records up to ``through``, as retention does."""
    place = TopicPartition(topic, 0, through + 1)
    # The variable keeps the client alive until its answer arrives.
    admin = AdminClient({"bootstrap.servers": bus.address.servers})
    admin.delete_records([place])[place].result(TIMEOUT_S)


def readable(bus: KafkaBus, through: int) -> None:
    wait_until(lambda: bus.decided_seq() == bus.image().seq == through, f"seq {through} to be readable")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("kafka://a:1", Address("a:1", "isrflow")),
        ("kafka://a:1,b.c:22/x.y", Address("a:1,b.c:22", "x.y")),
        ("kafka://[::1]:9092/z", Address("[::1]:9092", "z")),
    ],
)
def test_an_address_is_read(url: str, address: Address) -> None:
    assert parse(url) == address
    assert parse(str(address)) == address


@pytest.mark.parametrize("url", ["kafka://", "kafka://a", "kafka://a:1/", "kafka://a:1;b:2", "kafka://a:1/x y", "a:1"])
def test_an_invalid_address_is_named(url: str) -> None:
    with pytest.raises(ValueError, match="expected kafka://"):
        parse(url)


def test_an_unreachable_bus_is_reported_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT_S", 1.0)
    with pytest.raises(BusError, match=NOBODY):
        open_bus(f"kafka://{NOBODY}")


@pytest.mark.kafka_bus
def test_a_missing_bus_is_not_created_for_reading(kafka_url: str) -> None:
    for _ in range(2):
        with pytest.raises(NoBusError, match=f"no topic {parse(kafka_url).events}"):
            open_bus(kafka_url, create=False)


@pytest.mark.kafka_bus
def test_a_topic_with_several_partitions_is_refused(kafka_url: str) -> None:
    address = parse(kafka_url)
    admin = AdminClient({"bootstrap.servers": address.servers})
    admin.create_topics([NewTopic(address.events, 2)])[address.events].result(TIMEOUT_S)
    with pytest.raises(BusError, match=f"{address.events} must have one partition, but has 2"):
        open_bus(kafka_url)


@pytest.mark.kafka_bus
def test_events_removed_by_retention_are_an_error(bus: KafkaBus) -> None:
    last = bus.publish([EVENT] * 10)
    remove(bus, bus.address.events, through=3)
    with pytest.raises(TrimmedError, match=f"up to {4 * SLOTS} were removed"):
        bus.read(3 * SLOTS, last)
    assert [entry.seq for entry in bus.read(4 * SLOTS, last)] == [n * SLOTS for n in range(5, 11)]
    assert bus.publish([EVENT]) == 11 * SLOTS


@pytest.mark.kafka_bus
def test_a_follower_that_missed_nothing_gets_no_error(bus: KafkaBus) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    bus.commit(epoch, 5, [Decided(3, 0, b"early"), Decided(3, 1, b"last")], [])
    bus.commit(epoch, 100, [Decided(99, 0, b"new")], [])
    readable(bus, 100)
    remove(bus, bus.address.decisions, through=1)
    assert bus.decisions((3, 1), 10) == bus.decisions((0, -1), 10) == [Decided(99, 0, b"new")]
    with pytest.raises(TrimmedError, match="read on from 4"):
        bus.decisions((2, 0), 10)
    remove(bus, bus.address.decisions, through=3)
    assert bus.decisions((99, 0), 10) == []
    with pytest.raises(TrimmedError, match="read on from 100"):
        bus.decisions((98, 0), 10)


@pytest.mark.kafka_bus
def test_an_open_transaction_of_a_dead_job_is_never_read(
    bus: KafkaBus, kafka_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = KafkaBus(kafka_url)
    first = dead.claim("dead", {}, 1).controller_epoch
    dead.commit(first, 1, [Decided(1, 0, b"done")], [Page(0, 0, b"done")])

    class KilledError(BaseException):
        pass

    def killed(transaction: Transaction) -> None:
        transaction.flush()
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "end", killed)
        with pytest.raises(KilledError):
            dead.commit(first, 2, [Decided(2, 0, b"half")], [Page(0, 0, b"half")])
    second = bus.claim("next", {}, 2).controller_epoch
    readable(bus, 1)
    assert bus.decisions((0, -1), 10) == [Decided(1, 0, b"done")]
    bus.commit(second, 2, [Decided(2, 0, b"whole")], [Page(0, 0, b"whole")])
    readable(bus, 2)
    assert bus.decisions((0, -1), 10) == [Decided(1, 0, b"done"), Decided(2, 0, b"whole")]
    assert bus.image() == (2, [Page(0, 0, b"whole")])
    dead.close()


@pytest.mark.kafka_bus
def test_only_the_claiming_job_commits(bus: KafkaBus, kafka_url: str) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    other = KafkaBus(kafka_url)
    wait_until(lambda: other.claimed_epoch() == epoch, "the claim to be readable")
    with pytest.raises(BusError, match="belongs to another process"):
        other.commit(epoch, 1, [], [])
    other.close()


@pytest.mark.kafka_bus
def test_a_standby_that_is_slow_to_connect_claims_nothing_after_a_faster_one_and_does_not_fence_it(
    bus: KafkaBus, kafka_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = bus.claim("active", {}, 1).controller_epoch
    faster, slower = KafkaBus(kafka_url), KafkaBus(kafka_url)
    connect = Connection.producer

    def connect_slowly(connection: Connection, **settings: Any) -> Producer:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(Connection, "producer", connect)
            faster.claim("faster", {}, 2, after_epoch=epoch)
            wait_until(lambda: slower.claimed_epoch() == epoch + 1, "the claim to be readable")
        return connect(connection, **settings)

    monkeypatch.setattr(Connection, "producer", connect_slowly)
    try:
        with pytest.raises(OvertakenError):
            slower.claim("slower", {}, 3, after_epoch=epoch)
        faster.commit(epoch + 1, faster.last_seq(), [], [])
    finally:
        faster.close()
        slower.close()


@pytest.mark.kafka_bus
def test_a_follower_from_the_start_learns_that_early_decisions_are_gone(bus: KafkaBus) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    bus.commit(epoch, SLOTS, [Decided(SLOTS, 0, b"first"), Decided(SLOTS, 1, b"second")], [])
    readable(bus, SLOTS)
    assert len(bus.decisions((1, -1), 10)) == 2
    remove(bus, bus.address.decisions, through=0)
    with pytest.raises(TrimmedError, match="read on from"):
        bus.decisions((1, -1), 10)
    assert bus.decisions((0, -1), 10) == [Decided(SLOTS, 1, b"second")]


@pytest.mark.kafka_bus
def test_a_fenced_job_resigns_silently_before_the_newer_claim_can_be_read(
    bus: KafkaBus, kafka_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = bus.claim("first", {}, 1).controller_epoch
    reader = Controller(Connection(bus.address))
    wait_until(lambda: reader.mark().controller_epoch == epoch, "the claim to be readable")
    known = reader.mark()
    newer = KafkaBus(kafka_url)
    later = newer.claim("second", {}, 2).controller_epoch
    with monkeypatch.context() as patched:
        patched.setattr(Controller, "mark", lambda _: known)
        bus.resign(epoch)
    wait_until(lambda: bus.claimed_epoch() == later, "the newer claim to be readable")
    assert newer.resigned_epoch() == 0
    newer.close()
