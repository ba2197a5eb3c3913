"""Read the state out of a bus's image."""

from typing import Any, NamedTuple

from bus.interface import Image
from state.cluster import Cluster
from state.codec import decode_cluster, joined_topics
from state.partition import Topic
from state.shard_outcome import CLUSTER_PAGE
from state.view import view_of


class Held(NamedTuple):
    """Hold the state of all shards: the cluster part that they share, and every topic."""

    cluster: Cluster
    topics: list[Topic]


def read_image(image: Image) -> Held:
    """Decode an image; one without pages is an empty cluster. Raises ``CodecError``."""
    cluster = Cluster()
    for page in image.pages:
        if page.page == CLUSTER_PAGE and page.shard == 0:
            cluster = decode_cluster(page.body)
    return Held(cluster, joined_topics(page.body for page in image.pages if page.page != CLUSTER_PAGE))


def view_of_image(image: Image) -> dict[str, Any]:
    """Describe the state that an image holds (contract.md section 3)."""
    return view_of(*read_image(image))
