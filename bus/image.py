"""The state in a bus's image: what its pages hold."""

from typing import Any, NamedTuple

from bus.interface import Image
from state.cluster import Cluster
from state.partition import Topic
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import decode_cluster, joined_topics
from state.view import view_of


class HeldState(NamedTuple):
    """The state of all shards: the cluster part, which they share, and every topic."""

    cluster: Cluster
    topics: list[Topic]


def read_image(image: Image) -> HeldState:
    """Decode an image. One without pages is an empty cluster. Raises ``CodecError``."""
    # The cluster part first: it says whether this release supports the level of the rest.
    cluster = read_cluster(image)
    return HeldState(cluster, joined_topics(page.body for page in image.pages if page.page != CLUSTER_PAGE))


def read_cluster(image: Image) -> Cluster:
    """Decode what all shards share, and no topic. Raises ``CodecError``."""
    for page in image.pages:
        if page.page == CLUSTER_PAGE and page.shard == 0:
            return decode_cluster(page.body)
    return Cluster()


def read_clusters(image: Image) -> list[Cluster]:
    """Decode the cluster part of every shard, in the order of the shards. Raises ``CodecError``."""
    clusters = [decode_cluster(page.body) for page in image.pages if page.page == CLUSTER_PAGE]
    return sorted(clusters, key=lambda cluster: cluster.shard)


def view_of_image(image: Image) -> dict[str, Any]:
    """Return the state in an image as users see it (docs/contract.md#state)."""
    return view_of(*read_image(image))
