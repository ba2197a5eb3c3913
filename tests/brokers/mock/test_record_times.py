"""Records found by their time, in batches that are correct, careless or malicious."""

import gzip
import random
import resource
import struct
import time

import pytest
from kafka.record.util import calc_crc32c

from brokers.mock.log.batch import produced
from brokers.mock.log.record_times import UNPACKED_BYTES_MAX, first_at_or_after
from brokers.wire.batch_header import CRC_FROM, HEADER, LENGTH_UP_TO
from brokers.wire.errors import ErrorCode, RefusedError
from tests.support.batches import batch

GZIP, LZ4 = 1, 3


def sealed(header: bytes, records: bytes, codec: int) -> bytes:
    """Make a batch whose header fits any records, as a hostile producer does."""
    made = bytearray(header[: HEADER.size]) + records
    struct.pack_into(">i", made, 8, len(made) - LENGTH_UP_TO)
    struct.pack_into(">h", made, CRC_FROM, codec)
    struct.pack_into(">I", made, CRC_FROM - 4, calc_crc32c(memoryview(made)[CRC_FROM:]))
    produced(bytes(made), 1 << 20)
    return bytes(made)


@pytest.mark.parametrize("compression", [0, GZIP])
def test_the_first_record_that_is_not_older_is_found(compression: int) -> None:
    data = batch(b"a" * 300, b"b", b"c" * 70, timestamp=1_000, compression=compression)
    assert first_at_or_after(data, 0) == (1_000, 0)
    assert first_at_or_after(data, 1_002) == (1_002, 2)
    assert first_at_or_after(data, 1_003) is None


def test_gzip_in_several_members_is_read() -> None:
    plain = batch(b"a", b"b" * 200)
    records = plain[HEADER.size :]
    data = sealed(plain, gzip.compress(records[:20]) + gzip.compress(records[20:]), GZIP)
    assert first_at_or_after(data, 1_001) == (1_001, 1)


def test_a_compression_that_is_not_known_here_leads_to_the_batch_s_first_record() -> None:
    assert first_at_or_after(sealed(batch(b"a", b"b"), b"unknown", LZ4), 1_001) == (1_000, 0)


@pytest.mark.parametrize(
    "packed",
    [b"garbage!", gzip.compress(b"abc")[:-6], gzip.compress(b"abcabc")[:11] + b"\xff" * 9, b"", gzip.compress(b"")],
    ids=["no-gzip", "cut-off", "damaged", "nothing", "empty"],
)
def test_damaged_gzip_is_refused(packed: bytes) -> None:
    with pytest.raises(RefusedError) as refused:
        first_at_or_after(sealed(batch(b"x"), packed, GZIP), 1_000)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_unpacks_to_too_much_is_refused_before_it_does() -> None:
    data = sealed(batch(b"x"), gzip.compress(bytes(300 << 20), 9), GZIP)
    began, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RefusedError, match=f"more than {UNPACKED_BYTES_MAX} bytes"):
        first_at_or_after(data, 1_000)
    assert time.process_time() - began < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 100 * 1024, "KiB"


def test_any_bytes_for_records_are_read_or_refused() -> None:
    chance = random.Random(1)
    plain = batch(b"abcdefgh", b"zz", b"y" * 90)
    outcomes = set()
    for _ in range(3_000):
        records = bytearray(plain[HEADER.size :])
        for _ in range(chance.choice((1, 2, 5, 20))):
            records[chance.randrange(len(records))] = chance.randrange(256)
        codec = chance.choice((0, GZIP))
        data = sealed(plain, gzip.compress(records) if codec else bytes(records), codec)
        try:
            found = first_at_or_after(data, 1_001)
            assert found is None or (1_001 <= found[0] < 2**63 and 0 <= found[1] <= 2)
            outcomes.add("read")
        except RefusedError as refused:
            assert refused.code == ErrorCode.CORRUPT_MESSAGE
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
