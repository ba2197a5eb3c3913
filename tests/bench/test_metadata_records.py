"""The benchmarks' quick reader of the metadata log reads what the codec writes."""

from bench.metadata_records import (
    NO_OP,
    PARTITION,
    Partition,
    ReadBatch,
    partition_in,
    records_in,
    uuid_text,
    whole_batches,
)
from brokers.wire.metadata.record_frame import encode_record
from brokers.wire.record_batch import encode_batch
from brokers.wire.schema import Values

TOPIC_ID = "aaaaaaaaaaaaaaaaaaaaaQ"


def created(number: int) -> bytes:
    values: Values = {
        "PartitionId": number,
        "TopicId": TOPIC_ID,
        "Replicas": [number, 2, 3],
        "Isr": [3, 2],
        "Leader": 3,
        "LeaderEpoch": 7,
        "PartitionEpoch": 9,
        "LeaderRecoveryState": 1,
        "Directories": [TOPIC_ID] * 3,
    }
    return encode_record("PartitionRecord", 1, values)


def batch(first: int, *records: bytes) -> bytes:
    return encode_batch(first, 5, 1_700_000_000_000, [(None, record) for record in records])


def test_partitions_are_read_as_they_were_written() -> None:
    # Enough for offset deltas of two bytes.
    numbers = range(200)
    read = list(records_in(batch(0, *map(created, numbers))))
    assert [kind for kind, _ in read] == [PARTITION] * len(numbers)
    partitions = [partition_in(message) for _, message in read]
    assert partitions == [
        Partition(partitions[0].topic_id, number, (number, 2, 3), (3, 2), 3, 7, 9) for number in numbers
    ]
    assert uuid_text(partitions[0].topic_id) == TOPIC_ID


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    first, second = batch(0, created(1)), batch(1, created(2), created(3))
    assert list(whole_batches(first + second)) == [(first, 1, 1, 5, False), (second, 2, 3, 5, False)]
    assert list(whole_batches(first + second[:-1])) == [(first, 1, 1, 5, False)]


def test_an_empty_record_is_no_news() -> None:
    idle = batch(0, encode_record("NoOpRecord", 0, {}))
    assert [kind for kind, _ in records_in(idle)] == [NO_OP]
    assert not ReadBatch(0.0, idle, 1, 1, 5).is_news
    assert ReadBatch(0.0, batch(0, created(1)), 1, 1, 5).is_news
