"""The bytes in which state is kept: a version byte, then MessagePack."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from state.cluster import STATE_VERSION, Cluster
from state.compression import COMPRESSED_BYTES_MIN, compressed, decompressed
from state.partition import Topic
from state.slices import Slice, StoredPage, StoredSlice, has_directories, read, stored, whole

_T = TypeVar("_T")
_VERSION_BYTE = bytes([STATE_VERSION])
# A page of version 2, in which some topics are not whole. Nothing writes it any more.
_SLICES_BYTE = bytes([2])
# A page whose partitions are packed (``state.packed``).
_PACKED_BYTE = bytes([3])
# Such a page, or a cluster part, compressed. The engine writes the last two versions of pages, and reads all.
_COMPRESSED_BYTE = bytes([4])
_encoder = msgspec.msgpack.Encoder()
_cluster = msgspec.msgpack.Decoder(Cluster)
_topics = msgspec.msgpack.Decoder(list[Topic])
_slices = msgspec.msgpack.Decoder(list[Slice])
_page = msgspec.msgpack.Decoder(StoredPage)


class CodecError(Exception):
    """Stored bytes of a version or shape that this code does not read."""


def encode_cluster(cluster: Cluster) -> bytes:
    """Write the cluster part."""
    return _shrunk(_VERSION_BYTE + _encoder.encode(cluster))


def decode_cluster(body: bytes) -> Cluster:
    """Read the cluster part; raises ``CodecError``."""
    return _decoded(_cluster, _whole(body))


def encode_topics(topics: list[Topic]) -> bytes:
    """Write one page of topics, which the caller keeps in order of name. Directories need the newest version."""
    if any(map(has_directories, topics)):
        return encode_stored([stored(Slice(topic, len(topic.partitions))) for topic in topics])
    return _VERSION_BYTE + _encoder.encode(topics)


def decode_topics(body: bytes) -> list[Topic]:
    """Read one page of topics, each of which is whole; raises ``CodecError``."""
    if body[:1] in (_PACKED_BYTE, _COMPRESSED_BYTE):
        return joined_topics([body])
    return [_with_tuple(topic) for topic in _decoded(_topics, body)]


def _with_tuple(topic: Topic) -> Topic:
    return msgspec.structs.replace(topic, partitions=tuple(topic.partitions))


def decode_slices(body: bytes) -> list[Slice]:
    """Read one page of topics, whole or in slices; raises ``CodecError``."""
    if body[:1] in (_PACKED_BYTE, _COMPRESSED_BYTE):
        return _read(decode_stored(body))
    if body[:1] == _SLICES_BYTE:
        return [Slice(_with_tuple(one.topic), one.count) for one in _decoded(_slices, body, _SLICES_BYTE)]
    return [Slice(topic, len(topic.partitions)) for topic in decode_topics(body)]


def encode_stored(slices: list[StoredSlice | Topic]) -> bytes:
    """Write one page of slices and small topics as they are stored."""
    packed = [one for one in slices if isinstance(one, StoredSlice)]
    plain = [one for one in slices if isinstance(one, Topic)]
    return _shrunk(_PACKED_BYTE + _encoder.encode(StoredPage(packed, plain)))


def decode_stored(body: bytes) -> list[StoredSlice | Topic]:
    """Read one page of any version, and leave its partitions packed; raises ``CodecError``."""
    body = _whole(body)
    if body[:1] == _PACKED_BYTE:
        page = _decoded(_page, body, _PACKED_BYTE)
        return [*page.packed, *page.plain]
    return [stored(one) for one in decode_slices(body)]


def _shrunk(body: bytes) -> bytes:
    return body if len(body) < COMPRESSED_BYTES_MIN else _COMPRESSED_BYTE + compressed(body)


def holds_the_same(one: bytes, other: bytes) -> bool:
    """Return whether two stored pages, or cluster parts, hold the same. Another zlib compresses them to other bytes."""
    try:
        return one == other or _whole(one) == _whole(other)
    except CodecError:
        return False


def _whole(body: bytes) -> bytes:
    if body[:1] != _COMPRESSED_BYTE:
        return body
    try:
        return decompressed(body[1:])
    except ValueError as error:
        raise CodecError(f"state cannot be read: {error}") from error


def _read(slices: list[StoredSlice | Topic]) -> list[Slice]:
    try:
        return sorted(map(read, slices), key=lambda one: one.topic.topic)
    except (msgspec.DecodeError, ValueError) as error:
        raise CodecError(f"state cannot be read: {error}") from error


def joined_topics(bodies: Iterable[bytes]) -> list[Topic]:
    """Read all topics of a state from its pages; raises ``CodecError``."""
    held: dict[str, list[Slice]] = {}
    for body in bodies:
        for one in decode_slices(body):
            held.setdefault(one.topic.topic, []).append(one)
    try:
        return [whole(slices) for slices in held.values()]
    except ValueError as error:
        raise CodecError(str(error)) from error


def _decoded(decoder: "msgspec.msgpack.Decoder[_T]", body: bytes, version: bytes = _VERSION_BYTE) -> _T:
    if body[:1] != version:
        raise CodecError(f"state of version {body[:1].hex() or 'none'}; this code reads {version.hex()}")
    try:
        return decoder.decode(memoryview(body)[1:])
    except msgspec.DecodeError as error:
        raise CodecError(f"state cannot be read: {error}") from error
