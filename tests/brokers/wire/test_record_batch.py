"""Record batches in a log: always the same bytes, readable by another library, and refused when damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder
from kafka.record.default_records import ControlRecord
from kafka.record.memory_records import MemoryRecords

from brokers.wire.record_batch import (
    LEADER_CHANGE,
    BatchError,
    RecordBatch,
    control_key,
    decode_batches,
    encode_batch,
)

RECORDS = st.lists(st.tuples(st.none() | st.binary(max_size=9), st.binary(max_size=200)), min_size=1, max_size=9)
INT64 = st.integers(0, 2**62)


@given(INT64, st.integers(0, 2**31 - 1), INT64, RECORDS)
def test_what_is_written_is_read_back(
    offset: int, epoch: int, ms: int, records: list[tuple[bytes | None, bytes]]
) -> None:
    data = encode_batch(offset, epoch, ms, records)
    assert data == encode_batch(offset, epoch, ms, records)
    assert list(decode_batches(data)) == [RecordBatch(offset, epoch, ms, False, tuple(records), len(data))]


def test_another_library_writes_the_same_bytes() -> None:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=10_000)
    for key, value in ((None, b"one"), (b"k", b"two" * 50)):
        builder.append(timestamp=77, key=key, value=value)
    builder.close()
    theirs = bytearray(builder.buffer())
    theirs[12:16] = bytes(4)  # a producer does not know the leader epoch, and the CRC does not cover it
    assert encode_batch(0, 0, 77, [(None, b"one"), (b"k", b"two" * 50)]) == theirs


def test_another_library_recognizes_a_control_batch() -> None:
    data = encode_batch(40, 3, 0, [(control_key(LEADER_CHANGE), b"message")], control=True)
    batch = MemoryRecords(data).next_batch()
    assert batch is not None
    assert batch.is_control_batch
    assert batch.validate_crc()
    (record,) = list(batch)
    assert isinstance(record, ControlRecord)
    assert (record.offset, record.version, record.type, record.value) == (40, 0, LEADER_CHANGE, b"message")
    assert next(decode_batches(data)).control


def test_batches_follow_each_other() -> None:
    data = encode_batch(0, 1, 5, [(None, b"a"), (None, b"b")]) + encode_batch(2, 2, 6, [(None, b"c")])
    first, second = decode_batches(data)
    assert (first.next_offset, second.base_offset, second.leader_epoch) == (2, 2, 2)


WHOLE = encode_batch(0, 1, 5, [(None, b"first")])


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (WHOLE[:60], "60 bytes are left, and a header has 61"),
        (WHOLE[:-1], f"{len(WHOLE)} bytes are announced and {len(WHOLE) - 1} are left"),
        (WHOLE[:16] + b"\1" + WHOLE[17:], "magic 1, not 2"),
        (WHOLE[:-1] + b"x", "the CRC does not match"),
        (WHOLE[:8] + b"\xff\xff\xff\xff" + WHOLE[12:], "11 bytes are announced"),
        (WHOLE[:8] + b"\x7f\xff\xff\xff" + WHOLE[12:], "2147483659 bytes are announced"),
    ],
)
def test_a_damaged_batch_is_found_and_those_before_it_are_read(second: bytes, said: str) -> None:
    batches = decode_batches(WHOLE + second)
    assert next(batches).records == ((None, b"first"),)
    with pytest.raises(BatchError, match=f"the record batch at byte {len(WHOLE)}: {said}") as caught:
        next(batches)
    assert caught.value.position == len(WHOLE)


def test_a_batch_has_records_and_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch(0, 0, 0, [])
    monkeypatch.setattr("brokers.wire.record_batch.BATCH_BYTES_MAX", 100)
    with pytest.raises(ValueError, match="a batch of 170 bytes; the limit is 100"):
        encode_batch(0, 0, 0, [(None, bytes(100))])


@pytest.mark.parametrize("key", [None, b"x"])
def test_a_control_record_has_a_key_of_four_bytes(key: bytes | None) -> None:
    with pytest.raises(BatchError, match="its records cannot be read"):
        list(decode_batches(encode_batch(0, 0, 0, [(key, b"")], control=True)))
