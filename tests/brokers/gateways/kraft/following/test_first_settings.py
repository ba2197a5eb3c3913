"""A gateway asks for eligible leader replicas before it begins a log that has them by default, and never otherwise."""

import pytest

from brokers.gateways.kraft.following.first_settings import first_settings
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.sliced_map import SlicedMap
from state.cluster import Cluster
from state.features import ELIGIBLE_LEVEL, ELIGIBLE_VERSION, METADATA_VERSION
from state.metadata_quorum import Quorum

NEW = Cluster(level=ELIGIBLE_LEVEL)


def asked(cluster: Cluster, metadata_version: int) -> list[dict[str, object]]:
    image = MetadataImage(features=SlicedMap({METADATA_VERSION: metadata_version}))
    return [dict(one.config) for one in first_settings(cluster, image)]


def test_they_are_asked_for_from_kafka_4_1_on() -> None:
    assert asked(NEW, 26) == [{ELIGIBLE_VERSION: "1"}]
    assert asked(NEW, 25) == []


@pytest.mark.parametrize(
    "other",
    [
        Cluster(level=1),
        Cluster(level=ELIGIBLE_LEVEL, config={ELIGIBLE_VERSION: "0"}),
        Cluster(level=ELIGIBLE_LEVEL, quorum=Quorum(quorum_epoch=1)),
    ],
    ids=["the bus is at level 1", "an admin has chosen", "the log has begun"],
)
def test_they_are_not_asked_for(other: Cluster) -> None:
    assert asked(other, 27) == []
