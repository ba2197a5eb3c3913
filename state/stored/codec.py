"""The bytes in which state is kept: its level, how the rest is compressed, then MessagePack.

The level of the cluster part is the bus's (``state.level``). A page has the first level at which it is written so.

Partitions and brokers resemble each other, so a large page shrinks to a third or less. From level 2 on, pages are
compressed by Zstandard, which takes less than half of zlib's time.
"""

import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from state.broker import Broker
from state.cluster import Cluster
from state.level import FIRST_LEVEL, NEWEST_LEVEL, told
from state.partition import Partition, Topic
from state.stored.packed import Unpacked
from state.stored.slices import Slice, slices_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_T = TypeVar("_T")
_PLAIN, _ZLIB, _ZSTD = 0, 1, 2
# The first level at which pages are compressed by Zstandard.
_ZSTD_BUS_LEVEL = 2
# A smaller page gains little.
COMPRESSED_BYTES_MIN = 4 * 1024
# The most bytes of a page before compression. Damaged bytes are refused before they take more memory.
PAGE_BYTES_MAX = 256 * 1024 * 1024
# A higher level takes longer and saves little.
COMPRESSION_LEVEL = 1
_ZSTD_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: COMPRESSION_LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_BROKERS = Cluster.__struct_fields__.index("brokers")
_FIELDS_AT_LEVEL_1 = Cluster.__struct_fields__.index("recoveries_due")
_BROKER_FIELDS_AT_LEVEL_1 = Broker.__struct_fields__.index("level") + 1
_encoder = msgspec.msgpack.Encoder()
_NO_BROKERS = msgspec.Raw(_encoder.encode({}))
_cluster = msgspec.msgpack.Decoder(Cluster)
_fields = msgspec.msgpack.Decoder(list[msgspec.Raw])
_slices = msgspec.msgpack.Decoder(list[Slice])


class CodecError(Exception):
    """Stored bytes of a shape that this code does not read."""


class LevelError(CodecError):
    """Stored bytes of a level that this release does not support."""


def encode_cluster(cluster: Cluster) -> bytes:
    return _encoded(_at_level_1(cluster) if cluster.level == FIRST_LEVEL else cluster, cluster.level)


def _at_level_1(cluster: Cluster) -> list[object]:
    """Return a cluster's fields as level 1 has them. What a later level adds is at the end, and has its default."""
    fields = list(astuple(cluster)[:_FIELDS_AT_LEVEL_1])
    brokers = {number: astuple(broker)[:_BROKER_FIELDS_AT_LEVEL_1] for number, broker in cluster.brokers.items()}
    fields[_BROKERS] = brokers
    return fields


def decode_cluster(body: bytes) -> Cluster:
    """Read the cluster part; raises ``CodecError``."""
    return _decoded(_cluster, body)


def decode_without_brokers(body: bytes) -> Cluster:
    """Read the cluster part, but not its brokers, which take most of the time; raises ``CodecError``."""
    fields = _decoded(_fields, body)
    fields[_BROKERS] = _NO_BROKERS
    return _decoded(_cluster, bytes([body[0], _PLAIN]) + _encoder.encode(fields))


def encode_slices(slices: list[Slice], level: int = FIRST_LEVEL) -> bytes:
    """Write one page for a bus at ``level``."""
    return _encoded(slices, FIRST_LEVEL if level < _ZSTD_BUS_LEVEL else _ZSTD_BUS_LEVEL)


def decode_slices(body: bytes) -> list[Slice]:
    """Read one page, and leave its partitions packed; raises ``CodecError``."""
    return _decoded(_slices, body)


def encode_topics(topics: Iterable[Topic], level: int = FIRST_LEVEL) -> bytes:
    """Write whole topics as one page for a bus at ``level``."""
    return encode_slices(list(chain.from_iterable(map(slices_of, topics))), level)


def partitions_in(one: Slice) -> tuple[Partition, ...]:
    """Read all partitions of a slice; raises ``CodecError``."""
    with unpacking():
        return tuple(Unpacked(one.partitions).all())


@contextmanager
def unpacking() -> Iterator[None]:
    """Raise ``CodecError`` if the partitions of a slice cannot be read in the block."""
    try:
        yield
    except (msgspec.DecodeError, ValueError) as error:
        raise CodecError(f"state cannot be read: {error}") from error


def joined_topics(bodies: Iterable[bytes]) -> list[Topic]:
    """Read all topics of a state from its pages; raises ``CodecError``."""
    held: dict[str, list[Slice]] = {}
    for body in bodies:
        for one in decode_slices(body):
            held.setdefault(one.topic, []).append(one)
    return [_whole(slices) for slices in held.values()]


def _whole(slices: list[Slice]) -> Topic:
    """Put a topic together from its slices in any order."""
    slices = sorted(slices, key=lambda one: one.first_partition)
    first = slices[0]
    partitions = tuple(chain.from_iterable(map(partitions_in, slices)))
    ids = {one.topic_id for one in slices}
    if [partition.partition for partition in partitions] != list(range(first.count)) or len(ids) > 1:
        raise CodecError(
            f"topic {first.topic} has {first.count} partitions, and its slices do not make up these: "
            f"{len(partitions)} partitions of {len(ids)} topic id(s)"
        )
    return Topic(first.topic, first.topic_id, first.state, first.config, partitions, first.deletion_waits)


def holds_the_same(one: bytes, other: bytes) -> bool:
    """Return whether two stored pages, or cluster parts, hold the same.

    Another level, or another release of a library, compresses to other bytes.
    """
    try:
        return one == other or _content(one) == _content(other)
    except CodecError:
        return False


def _encoded(value: object, level: int) -> bytes:
    body = _encoder.encode(value)
    if len(body) < COMPRESSED_BYTES_MIN:
        return bytes([level, _PLAIN]) + body
    if level < _ZSTD_BUS_LEVEL:
        return bytes([level, _ZLIB]) + zlib.compress(body, COMPRESSION_LEVEL)
    return bytes([level, _ZSTD]) + zstd.compress(body, options=_ZSTD_OPTIONS)


def _decoded(decoder: "msgspec.msgpack.Decoder[_T]", body: bytes) -> _T:
    try:
        return decoder.decode(_content(body))
    except msgspec.DecodeError as error:
        raise CodecError(f"state cannot be read: {error}") from error


def _content(body: bytes) -> bytes | memoryview:
    if len(body) < 2 or not body[0] or body[1] > _ZSTD:
        raise CodecError(f"state cannot be read: it begins with {body[:2].hex() or 'nothing'}")
    if body[0] > NEWEST_LEVEL:
        raise LevelError(told(body[0]))
    content = memoryview(body)[2:]
    if body[1] == _PLAIN:
        return content
    return _decompressed(content, zlib.decompressobj() if body[1] == _ZLIB else zstd.ZstdDecompressor())


def _decompressed(body: memoryview, unpacking: "zlib._Decompress | zstd.ZstdDecompressor") -> bytes:
    """Return a page. Both ways of compressing it have a checksum."""
    try:
        page = unpacking.decompress(body, PAGE_BYTES_MAX)
    except (zlib.error, zstd.ZstdError) as error:
        raise CodecError(f"state cannot be read: a compressed page is damaged: {error}") from error
    if not unpacking.eof or unpacking.unused_data:
        raise CodecError(f"state cannot be read: a compressed page does not end after {len(body)} bytes")
    return page
