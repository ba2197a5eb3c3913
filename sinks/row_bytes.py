"""The bytes of a long row on its way through Spark, compressed.

Between two Python processes Spark's JVM copies a row some ten times, and holds several of the copies at once. The
content of a row repeats itself, so it shrinks to a third or less, in less time than these copies take.
"""

import struct

import pyarrow as pa

# A shorter row gains little.
COMPRESSED_BYTES_MIN = 64 * 1024
_CODEC = "zstd"
# The length before compression, or 0 if the row is not compressed.
_HEAD = struct.Struct(">Q")


def row_of(body: bytes, *, compressed: bool = True) -> bytes:
    """Return the bytes of a row. A short one is not compressed."""
    if not compressed or len(body) < COMPRESSED_BYTES_MIN:
        return _HEAD.pack(0) + body
    return _HEAD.pack(len(body)) + bytes(pa.compress(body, codec=_CODEC, asbytes=True))


def body_of(row: bytes) -> bytes:
    """Return what ``row_of`` was given."""
    (length,) = _HEAD.unpack_from(row)
    body = row[_HEAD.size :]
    return bytes(pa.decompress(body, decompressed_size=length, codec=_CODEC, asbytes=True)) if length else body
