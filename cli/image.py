"""Read the state that the engine last committed to the bus."""

from typing import Any

from isrflow.bus.interface import Bus
from isrflow.state.codec import decode_cluster, decode_topics
from isrflow.state.view import view_of

CLUSTER_PAGE = -1


def read_view(bus: Bus) -> dict[str, Any] | None:
    """Describe the state, or return None when no job has committed any yet."""
    image = bus.image()
    cluster, topics = None, []
    for page in image.pages:
        if page.page != CLUSTER_PAGE:
            topics += decode_topics(page.body)
        elif page.shard == 0:
            cluster = decode_cluster(page.body)
    return None if cluster is None else view_of(cluster, topics)
