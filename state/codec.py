"""The bytes in which state is kept: a version byte, then MessagePack."""

from typing import TypeVar

import msgspec

from isrflow.state.cluster import STATE_VERSION, Cluster
from isrflow.state.partition import Topic
from isrflow.state.rules import NEWEST_RULES

_T = TypeVar("_T")
_VERSION_BYTE = bytes([STATE_VERSION])
_encoder = msgspec.msgpack.Encoder()
_cluster = msgspec.msgpack.Decoder(Cluster)
_topics = msgspec.msgpack.Decoder(list[Topic])


class CodecError(Exception):
    """Stored bytes are of a version or shape that this code does not read."""


def encode_cluster(cluster: Cluster) -> bytes:
    """Write the cluster part."""
    return _VERSION_BYTE + _encoder.encode(cluster)


def decode_cluster(body: bytes) -> Cluster:
    """Read the cluster part; raises ``CodecError``."""
    cluster = _decoded(_cluster, body)
    if cluster.rules_version > NEWEST_RULES:
        raise CodecError(
            f"state by version {cluster.rules_version} of the rules; this code has those up to {NEWEST_RULES}: "
            "a later isrflow wrote it"
        )
    return cluster


def encode_topics(topics: list[Topic]) -> bytes:
    """Write one page of topics, which the caller keeps in order of name."""
    return _VERSION_BYTE + _encoder.encode(topics)


def decode_topics(body: bytes) -> list[Topic]:
    """Read one page of topics; raises ``CodecError``."""
    return _decoded(_topics, body)


def _decoded(decoder: "msgspec.msgpack.Decoder[_T]", body: bytes) -> _T:
    if body[:1] != _VERSION_BYTE:
        raise CodecError(f"state of version {body[:1].hex() or 'none'}; this code reads {_VERSION_BYTE.hex()}")
    try:
        return decoder.decode(memoryview(body)[1:])
    except msgspec.DecodeError as error:
        raise CodecError(f"state cannot be read: {error}") from error
