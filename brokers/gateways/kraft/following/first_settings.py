"""The settings that a gateway asks for before it begins the metadata log."""

from collections.abc import Iterator

from brokers.gateways.kraft.metadata.image import MetadataImage, metadata_version_of
from bus.clock import now_ms
from state.cluster import Cluster
from state.events import AlterConfig
from state.features import ELIGIBLE_LEVEL, ELIGIBLE_ON_SINCE, ELIGIBLE_VERSION


def first_settings(cluster: Cluster, image: MetadataImage) -> Iterator[AlterConfig]:
    """Yield the request to turn eligible leader replicas on, if a log of this metadata version begins with them.

    The level of the feature is a setting, and every shard must know it, so gateways ask for it. ``cluster`` is the
    committed state. Once the log has begun, the request is refused by its quorum epoch: by then an admin may have
    chosen.
    """
    is_due = cluster.quorum.quorum_epoch == 0 and metadata_version_of(image) >= ELIGIBLE_ON_SINCE
    if is_due and cluster.level >= ELIGIBLE_LEVEL and ELIGIBLE_VERSION not in cluster.config:
        yield AlterConfig(time_ms=now_ms(), entity="cluster", config={ELIGIBLE_VERSION: "1"}, quorum_epoch=0)
