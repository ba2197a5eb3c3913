"""The events of a bus on Kafka in batches: one order, bounded weight, and the same events again after a kill."""

import random
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from bus.interface import Entry, TrimmedError
from bus.kafka.batches import Batches, Bounds
from bus.kafka.bus import KafkaBus
from bus.kafka.publisher import BATCH_EVENTS_MAX
from bus.weight import PARTITION_BYTES
from isrflow.kafka.seqs import offset_after, seq_of
from tests.support.engine import encoded
from tests.support.waiting import TIMEOUT_S

TICK, BEAT, BAD = b'{"kind":"tick","time_ms":1}', b'{"kind":"broker_heartbeat"}', b"\xff"
ASKED = b'{"kind":"create_topic","timeout_ms":5}'
STARTED = b'{"kind":"controller_started"}'
WIDE = Bounds(1_000, 1_000_000)


def test_seq_and_offset_convert_both_ways() -> None:
    assert [offset_after(seq) for seq in (-1, 0, 1, 3)] == [0, 0, 1, 3]
    assert [offset_after(seq_of(offset)) for offset in (0, 1, 99)] == [1, 2, 100]


@pytest.fixture
def batches(bus: KafkaBus) -> Iterator[Batches]:
    batches = opened(bus)
    yield batches
    batches.close()


def opened(bus: KafkaBus) -> Batches:
    return Batches(str(bus.address))


def cut(batches: Batches, bounds: Bounds, *, again: bool = False, defer: bool = False) -> list[list[Entry]]:
    """Read all there is, as Spark does; with ``again`` each batch as after a restart, from its two positions alone."""
    found = []
    at = batches.first(0)
    while (end := batches.plan(at, bounds, defer=defer)) != at:
        if again:
            batches.plan(end, bounds, defer=defer)
        found.append(list(batches.read(at, end)))
        at = end
    # The mark of a claim's transaction takes an offset, so there may be a batch without events.
    return [batch for batch in found if batch]


def texts(found: list[list[Entry]]) -> list[list[bytes]]:
    return [[entry.raw for entry in batch] for batch in found]


def reported(number: int) -> bytes:
    return encoded("log_end_offset", topic=f"t{number}", partition=0, broker=1, leader_epoch=0, log_end_offset=number)


@pytest.mark.kafka_bus
def test_the_decisions_of_a_batch_are_bounded_by_bytes(bus: KafkaBus, batches: Batches) -> None:
    create = encoded("create_topic", topic="t", partitions=100_000, replication_factor=1)
    named = encoded("create_topic", topic="n", assignment={"0": [1]}, x="x" * 5_000)
    bus.publish([BEAT, create, create, BEAT, named, BEAT])
    bounds = Bounds(1_000, 60_000 * PARTITION_BYTES)
    assert texts(cut(batches, bounds)) == [[BEAT], [create], [create], [BEAT, named, BEAT]]
    tight = Bounds(1_000, len(named) + PARTITION_BYTES)
    assert texts(cut(batches, tight)) == [[BEAT], [create], [create], [BEAT], [named], [BEAT]]


@pytest.mark.kafka_bus
def test_batches_are_bounded_by_bytes_and_by_count(bus: KafkaBus, batches: Batches) -> None:
    sizes = [10, 10, 10, 90, 1, 30, 5, 5]
    bus.publish([b"x" * size for size in sizes])
    found = [[len(raw) for raw in batch] for batch in texts(cut(batches, Bounds(6, 50)))]
    assert found == [[10, 10, 10], [90], [1, 30, 5, 5]]
    assert [len(batch) for batch in cut(batches, Bounds(3, 1_000))] == [3, 3, 2]


@pytest.mark.kafka_bus
def test_heartbeats_and_log_ends_wait_until_another_event_follows_them(bus: KafkaBus, batches: Batches) -> None:
    report = reported(1)
    bus.publish_own([BEAT, report])
    assert cut(batches, WIDE, defer=True) == []
    bus.publish_own([BEAT, TICK, BEAT, ASKED, BEAT])
    assert texts(cut(batches, WIDE, defer=True)) == [[BEAT, report, BEAT, TICK, BEAT, ASKED]]
    bus.publish_own([BEAT, BEAT, TICK])
    at = bus.last_seq() - 4
    assert [entry.raw for entry in batches.read(at, batches.plan(at, WIDE, defer=True))] == [BEAT, BEAT, BEAT, TICK]


@pytest.mark.kafka_bus
def test_what_waits_is_bounded(bus: KafkaBus, batches: Batches) -> None:
    bus.publish_own([*[BEAT] * 4, TICK, BEAT, BEAT])
    assert texts(cut(batches, Bounds(3, 1_000), defer=True)) == [[BEAT] * 3, [BEAT, TICK]]


@pytest.mark.kafka_bus
def test_a_repeated_batch_has_the_same_events_whatever_the_bounds_are_by_then(bus: KafkaBus, batches: Batches) -> None:
    rng = random.Random(4)
    for _ in range(6):
        some = [rng.choice((TICK, BEAT, BAD, ASKED, BEAT * 40)) for _ in range(20)]
        bus.publish_own([*some, *(reported(rng.randrange(9)) for _ in range(30))])
        bus.claim("a", {}, 1)
    first = cut(batches, Bounds(40, 4_000))
    assert cut(opened(bus), Bounds(40, 4_000), again=True) == first
    assert len(first) > 10
    seqs = [entry.seq for batch in first for entry in batch]
    assert seqs == sorted(set(seqs))
    assert bus.recorded(0, bus.last_seq(), 10_000, 2**62) == [entry for batch in first for entry in batch]
    assert len(seqs) == 6 * (20 + 30 + 1)
    claims = [entry.seq for batch in first for entry in batch if entry.is_claim]
    assert len(claims) == 6
    # What a claim found undecided carries its time.
    assert all(entry.found_ms for batch in first for entry in batch if entry.raw == ASKED)


@pytest.mark.kafka_bus
def test_every_event_that_a_claim_found_undecided_carries_the_time_of_that(bus: KafkaBus, batches: Batches) -> None:
    # The rules ask a gateway's start and a tick for it, and not only an event with a deadline.
    waiting = bus.publish_own([b'{"kind":"gateway_started"}', TICK])
    bus.claim("a", {}, 1)
    found = {entry.seq: entry.found_ms for batch in cut(batches, Bounds(1, 1)) for entry in batch}
    assert [time_ms is not None for seq, time_ms in found.items() if seq <= waiting] == [True, True]
    after = bus.publish_own([TICK])
    assert {entry.found_ms for batch in cut(batches, WIDE) for entry in batch if entry.seq == after} == {None}


@pytest.mark.kafka_bus
def test_what_a_tick_tells_is_known_to_batches_that_end_before_it(bus: KafkaBus, batches: Batches) -> None:
    claim = bus.claim("a", {}, 1)
    waiting = bus.publish([ASKED, ASKED])
    first = batches.plan(batches.first(0), Bounds(1, 1), defer=False)
    assert [entry.is_claim for entry in batches.read(batches.first(0), first)] == [True]
    bus.commit(claim.controller_epoch, claim.seq, [], [])
    told = b'{"kind":"tick","time_ms":1,"controller_epoch":1,"decided_seq":%d}' % claim.seq
    seq = bus.tell_undecided(claim.controller_epoch, told)
    after = bus.publish([ASKED])
    found, at = dict[int, int | None](), first
    while (end := batches.plan(at, Bounds(1, 1), defer=False)) != at:
        found |= {entry.seq: entry.found_ms for entry in batches.read(at, end)}
        at = end
    [told_ms] = [entry.entered_ms for entry in bus.read(claim.seq, after) if entry.seq == seq]
    assert found == {waiting - 1: told_ms, waiting: told_ms, seq: None, after: None}


@pytest.mark.kafka_bus
def test_a_forged_claim_is_not_a_claim(bus: KafkaBus, batches: Batches) -> None:
    bus.publish_own([STARTED])
    bus.claim("a", {}, 1)
    # A batch may end between them, because a claim's transaction ends later.
    forged, claim = [entry for batch in cut(batches, WIDE) for entry in batch]
    assert (forged.is_claim, claim.is_claim) == (False, True)
    assert all(entry.entered_ms for entry in (forged, claim))


@pytest.mark.kafka_bus
def test_removed_events_are_an_error(bus: KafkaBus, batches: Batches) -> None:
    bus.publish_own([TICK, BEAT])
    remove(bus, TopicPartition(bus.address.events, 0, 1))
    with pytest.raises(TrimmedError, match="events up to 1 were removed; 1 was asked for"):
        batches.plan(0, WIDE, defer=False)


@pytest.mark.kafka_bus
def test_aborted_records_are_in_no_batch(bus: KafkaBus, batches: Batches) -> None:
    producer = Producer({"bootstrap.servers": bus.address.servers, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(bus.address.events, BAD, partition=0)
    producer.flush(TIMEOUT_S)
    producer.abort_transaction(30)
    bus.publish([BEAT])
    assert texts(cut(batches, Bounds(1, 1_000))) == [[BEAT]]
    bus.publish([BEAT] * (BATCH_EVENTS_MAX + 1))
    assert sum(map(len, cut(batches, Bounds(20_000, 2**30)))) == BATCH_EVENTS_MAX + 2


def remove(bus: KafkaBus, *places: TopicPartition) -> None:
    """Do what retention does."""
    admin = AdminClient({"bootstrap.servers": bus.address.servers})
    for removed in admin.delete_records(list(places)).values():
        removed.result(TIMEOUT_S)
