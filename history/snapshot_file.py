"""A state in a file, from which a replay can start."""

import msgspec

from bus.interface import Image, Page
from history.state_at import StateAt
from state.cluster import MappedTopics
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import encode_cluster, encode_topics

_VERSION = 1


class _Page(msgspec.Struct):
    shard: int
    page: int
    body: bytes


class _Snapshot(msgspec.Struct):
    snapshot: int
    seq: int
    pages: list[_Page]


_decoder = msgspec.json.Decoder(_Snapshot)


def encode_snapshot(state: StateAt) -> bytes:
    """Write a state as one JSON object."""
    pages = []
    for shard in state.states:
        assert isinstance(shard.topics, MappedTopics), "a rebuilt state is in memory"
        cluster, topics = shard.cluster, [topic for _, topic in sorted(shard.topics.items())]
        pages.append(_Page(cluster.shard, CLUSTER_PAGE, encode_cluster(cluster)))
        pages.append(_Page(cluster.shard, 0, encode_topics(topics, cluster.level)))
    return msgspec.json.encode(_Snapshot(_VERSION, state.seq, pages)) + b"\n"


def decode_snapshot(text: bytes) -> Image:
    """Read what ``encode_snapshot`` wrote. Raises ``ValueError``, which says what was expected."""
    try:
        found = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not a snapshot: {error}; 'isrflow events --snapshot FILE' writes one") from error
    if found.snapshot != _VERSION:
        raise ValueError(f"it has version {found.snapshot}; this isrflow reads version {_VERSION}")
    return Image(found.seq, [Page(page.shard, page.page, page.body) for page in found.pages])
