"""Blocks of decisions on Kafka: readers of every kind get the decisions one by one, as on a bus without blocks."""

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from brokers.engine.alike_decisions import one_by_one
from brokers.gateways.shared.whole_events import whole_events
from bus.interface import AFTER_ALL_OF, DamagedError, Decided, DecidedColumns, DivergedError, TrimmedError
from bus.kafka.bus import KafkaBus
from bus.kafka.connection import Connection
from bus.kafka.decision_reader import place_of
from bus.kafka.log_reader import LogReader, Record
from bus.kafka.sending import Headers
from bus.kafka.transaction import BLOCKS_COMMIT_MIN, Transaction
from isrflow.decision_blocks import BLOCK_DECISIONS_MIN, is_block, last_of
from isrflow.decision_columns import ROWS_MAX
from isrflow.kafka.log import KafkaLog
from isrflow.kafka.records import DECISION_KEY, PREVIOUS
from state.decisions import decode
from tests.bus.test_column_blocks import runs_of, texts_of
from tests.support.column_runs import in_columns
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka_bus

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
ALL = 10**6
# On each of three topics. The decisions on the second event need more than one block.
PARTITIONS = 1_000
Place = tuple[int, int]


def records_of(bus: KafkaBus) -> list[Record]:
    """Return what is in the topic of decisions."""
    connection, topic = Connection(bus.address), bus.address.decisions
    log = LogReader(connection, topic)
    log.seek(connection.start_offset(topic))
    found = log.take(connection.end_offset(topic), ALL)
    log.close()
    return found


def last_place(record: Record) -> Place:
    """Return the place of the last decision in a record."""
    return last_of(Decided(*place_of(record), record.value))


class Committed:
    """A bus with decisions on three events: many on the second, some on the others."""

    def __init__(self, bus: KafkaBus) -> None:
        self.bus = bus
        epoch = bus.claim("job", {}, 1).controller_epoch
        seqs = [bus.publish([EVENT]) for _ in range(3)]
        self.seqs = seqs
        self.runs = [runs_of(seqs[0], 2), runs_of(seqs[1], PARTITIONS), runs_of(seqs[2], 2)]
        self.decisions = [*texts_of(seqs[0], 2), *texts_of(seqs[1], PARTITIONS), *texts_of(seqs[2], 2)]
        for seq, runs in zip(seqs, self.runs, strict=True):
            bus.commit(epoch, seq, runs, [])
        wait_until(lambda: bus.decided_seq() == seqs[-1], "the decisions to be readable")

    def after(self, place: Place) -> list[Decided]:
        return [one for one in self.decisions if one[:2] > place]


@pytest.fixture
def committed(bus: KafkaBus) -> Committed:
    return Committed(bus)


@pytest.fixture
def client(committed: Committed) -> Iterator[KafkaLog]:
    client = KafkaLog(str(committed.bus.address))
    yield client
    client.close()


def test_a_long_commit_is_few_records_and_a_short_one_has_no_block(committed: Committed) -> None:
    records = records_of(committed.bus)
    blocks = [record for record in records if is_block(record.value)]
    second = [record for record in records if DECISION_KEY.unpack(record.key)[0] == committed.seqs[1]]
    decided = len(committed.runs[1])
    assert decided > ROWS_MAX
    assert blocks
    assert all(record in second for record in blocks)
    assert len(second) < decided / 50
    assert sum(len(record.value) for record in second) < decided * 40
    assert len(records) == len(second) + len(committed.runs[0]) + len(committed.runs[2])
    # Each record names the decision before it.
    assert [record.headers[PREVIOUS] for record in records[1:]] == [
        DECISION_KEY.pack(*last_place(before)) for before, _ in pairwise(records)
    ]


@pytest.mark.parametrize(("count", "records"), [(BLOCKS_COMMIT_MIN - 1, BLOCKS_COMMIT_MIN - 1), (BLOCKS_COMMIT_MIN, 1)])
def test_the_shortest_commit_with_blocks(bus: KafkaBus, count: int, records: int) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    seq = bus.publish([EVENT])
    bus.commit(epoch, seq, in_columns([Decided(seq, idx, b"{}") for idx in range(count)]), [])
    wait_until(lambda: bus.decided_seq() == seq, "the decisions to be readable")
    assert len(bus.decisions((0, -1), ALL)) == count
    assert len(records_of(bus)) == records


def test_a_commit_of_many_small_events_has_no_blocks(bus: KafkaBus) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    seqs = [bus.publish([EVENT]) for _ in range(40)]
    decisions = [Decided(seq, idx, b"{}") for seq in seqs for idx in range(BLOCK_DECISIONS_MIN - 1)]
    decisions += [Decided(seqs[-1], BLOCK_DECISIONS_MIN - 1 + idx, b"{}") for idx in range(40)]
    assert len(decisions) > BLOCKS_COMMIT_MIN
    bus.commit(epoch, seqs[-1], in_columns(decisions), [])
    wait_until(lambda: bus.decided_seq() == seqs[-1], "the decisions to be readable")
    assert len(records_of(bus)) == len(decisions)


def test_a_reader_within_a_block_has_news(committed: Committed) -> None:
    assert committed.bus.decisions((committed.seqs[1], 10), 5)
    assert committed.bus.changed()
    assert committed.bus.decisions((committed.seqs[1], 15), ALL)
    assert not committed.bus.changed()


def test_every_reader_gets_every_decision_from_any_place_and_with_any_limit(
    committed: Committed, client: KafkaLog
) -> None:
    draw = random.Random(1)
    wanted = committed.decisions
    places = [(0, -1), (committed.seqs[1], -1), (committed.seqs[1], AFTER_ALL_OF), *(one[:2] for one in wanted)]
    for place in [*places[:3], *draw.sample(places, 5), wanted[-2][:2], wanted[-1][:2]]:
        limit = draw.choice([1, 7, 64, ROWS_MAX, ALL])
        left = committed.after(place)
        assert committed.bus.decisions(place, limit) == left[:limit]
        assert client.decisions(place, limit, passing_over=False) == left[:limit]
        columns = committed.bus.decided_columns(place, limit)
        written_out = [one for row in columns for one in decisions_of(row)]
        assert written_out == left[: len(written_out)]
        assert len(written_out) >= min(limit, len(left))


def decisions_of(row: Decided | DecidedColumns) -> list[Decided]:
    if isinstance(row, Decided):
        return [row]
    bodies = row.block.lines(row.idx)
    return [Decided(row.seq, idx, body) for idx, body in enumerate(bodies, row.idx)]


@pytest.mark.parametrize("bytes_max", [1, 5_000, 1_000_000])
def test_a_reader_that_is_bounded_in_bytes_gets_all_decisions_in_turn(committed: Committed, bytes_max: int) -> None:
    wanted = committed.decisions if bytes_max > 1 else committed.decisions[:200]
    found: list[Decided] = []
    while len(found) < len(wanted):
        page = committed.bus.decisions(found[-1][:2] if found else (0, -1), ALL, bytes_max)
        assert page
        assert len(page) == 1 or sum(len(one.body) for one in page) <= bytes_max
        found += page
    assert found[: len(wanted)] == wanted


def test_a_reader_goes_on_in_the_middle_of_a_block_without_a_search(
    committed: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = []
    search = LogReader.seek_first
    monkeypatch.setattr(LogReader, "seek_first", lambda *given: (searches.append(1), search(*given))[1])
    found = committed.bus.decisions((0, -1), 100)
    while page := committed.bus.decisions(found[-1][:2], 1_500):
        # A gateway also reads one decision ahead, to see whether the event goes on.
        ahead = committed.bus.decisions(page[-1][:2], 1)
        assert ahead == committed.after(page[-1][:2])[:1]
        if ahead and ahead[0].seq == page[-1].seq and len(searches) == 1:
            assert committed.bus.decisions(page[-1][:2], 1) == ahead
        found += page
    assert found == committed.decisions
    # One at the start, and one behind each event whose next one was looked at.
    assert len(searches) <= 3


def test_a_gateway_gets_the_same_decisions_in_whole_events(committed: Committed) -> None:
    groups = [
        group for after in (0, committed.seqs[0], committed.seqs[1]) for group in whole_events(committed.bus, after)
    ]
    of_event = {group[0].seq: list(one_by_one(group)) for group in groups}
    wanted = [decode(one.body) for one in committed.decisions]
    assert of_event == {seq: [one for one in wanted if one.seq == seq] for seq in committed.seqs}


def test_a_client_begins_after_the_newest_decision_of_a_block(bus: KafkaBus) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    first = bus.publish([EVENT])
    runs = runs_of(first, PARTITIONS)
    bus.commit(epoch, first, runs, [])
    wait_until(lambda: bus.decided_seq() == first, "the decisions to be readable")
    client = KafkaLog(str(bus.address))
    assert client.newest_decision() == (first, len(runs) - 1)
    second = bus.publish([EVENT])
    news = texts_of(second, 2)
    bus.commit(epoch, second, news, [])
    wait_until(lambda: bus.decided_seq() == second, "the decisions to be readable")
    assert client.decisions((first, len(runs) - 1), ALL, passing_over=False) == news
    client.close()


def test_a_repeated_batch_is_compared_decision_by_decision(bus: KafkaBus) -> None:
    epoch = bus.claim("job", {}, 1).controller_epoch
    seq = bus.publish([EVENT])
    runs, texts = runs_of(seq, PARTITIONS), texts_of(seq, PARTITIONS)
    bus.commit(epoch, seq, runs, [])
    # The same decisions in other runs.
    bus.commit(epoch, seq, texts, [])
    other = [*texts]
    other[5_000] = other[5_000]._replace(body=b"{}")
    with pytest.raises(DivergedError, match=r"decision \(\d+, 5000\) came out differently"):
        bus.commit(epoch, seq, other, [])
    assert bus.decisions((0, -1), ALL) == texts


def test_retention_removes_whole_blocks_and_a_reader_in_one_is_told(committed: Committed, client: KafkaLog) -> None:
    seq = committed.seqs[1]
    within = (seq, 10)
    last_gone = (seq, len(committed.runs[1]) - 1)
    committed.bus.forget(seq)
    assert committed.bus.decisions((0, -1), ALL) == committed.after(last_gone)
    assert client.decisions((0, -1), ALL, passing_over=False) == committed.after(last_gone)
    for read in (committed.bus.decisions, client.decisions):
        with pytest.raises(TrimmedError, match=rf"decisions up to \({seq}, {last_gone[1]}\) were removed"):
            read(within, ALL, passing_over=False)  # type: ignore[operator]
    assert committed.bus.decisions(within, ALL, passing_over=True) == committed.after(last_gone)


def test_a_reader_finds_the_decisions_on_a_partition(committed: Committed) -> None:
    about = committed.bus.seqs_about("alone", 3, ALL * 2**20, 10)
    assert about == committed.seqs[::-1]


@pytest.mark.parametrize("left", [5, 20, -4])
def test_a_damaged_block_is_named(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    write = Transaction.write

    def damaged(
        self: Transaction, topic: str, key: bytes, value: bytes, headers: Headers | None = None, **rest: Any
    ) -> None:
        write(self, topic, key, value[:left] if topic == bus.address.decisions else value, headers, **rest)

    monkeypatch.setattr(Transaction, "write", damaged)
    epoch = bus.claim("job", {}, 1).controller_epoch
    seq = bus.publish([EVENT])
    bus.commit(epoch, seq, in_columns([Decided(seq, idx, b"{}") for idx in range(BLOCKS_COMMIT_MIN)]), [])
    wait_until(lambda: bus.decided_seq() == seq, "the decisions to be readable")
    client = KafkaLog(str(bus.address))
    for _ in range(2):
        with pytest.raises(DamagedError, match=rf"the block of decisions at \({seq}, 0\) cannot be read"):
            bus.decisions((0, -1), ALL)
        with pytest.raises(DamagedError, match=rf"the block of decisions at \({seq}, 0\) cannot be read"):
            client.decisions((0, -1), ALL, passing_over=False)
    client.close()


def test_a_reader_is_told_that_retention_has_removed_the_first_blocks_of_an_event(committed: Committed) -> None:
    """Retention of the topic itself goes by records, so it may remove the first blocks of an event."""
    blocks = [record for record in records_of(committed.bus) if is_block(record.value)]
    Connection(committed.bus.address).delete_records(
        TopicPartition(committed.bus.address.decisions, 0, blocks[1].offset)
    )
    gone = last_place(blocks[0])
    follower = KafkaBus(str(committed.bus.address))
    with pytest.raises(TrimmedError, match=rf"decisions up to \({gone[0]}, {gone[1]}\) were removed"):
        follower.decisions((gone[0], gone[1] - 1), 10)
    assert follower.decisions(gone, 10) == committed.after(gone)[:10]
    follower.close()
