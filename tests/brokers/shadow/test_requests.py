"""A shadow asks as nobody, and about exactly one partition."""

import pytest

from brokers.shadow.controller_line import (
    DESCRIBE_QUORUM,
    FETCH,
    FETCH_SNAPSHOT,
    Api,
    Position,
    SnapshotId,
    describe_quorum_values,
    fetch_snapshot_values,
    fetch_values,
)
from brokers.wire.catalogue import Catalogue
from brokers.wire.schema import Values

CATALOGUE = Catalogue("brokers.wire.metadata")


def sent(api: Api, version: int, values: Values) -> Values:
    """Return what a controller reads."""
    frame = CATALOGUE.encode_request(api.key, version, 1, "test", values)
    return CATALOGUE.decode_request(frame).values


@pytest.mark.parametrize("version", range(FETCH.version_min, FETCH.version_max + 1))
def test_a_fetch_is_that_of_nobody(version: int) -> None:
    high_watermark = 7 if version >= 18 else None
    request = sent(FETCH, version, fetch_values("c", Position(5, 3), 2, high_watermark, 500))
    assert request["ReplicaState"] == {"ReplicaId": -1, "ReplicaEpoch": -1}
    assert request["ReplicaId"] == -1
    [topic] = request["Topics"]
    [partition] = topic["Partitions"]
    assert partition["LastFetchedEpoch"] == 2, "a later epoch than the leader's is refused"
    assert partition["ReplicaDirectoryId"] == "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize("version", [0, 1])
def test_a_snapshot_is_asked_for_as_nobody_and_with_its_topic(version: int) -> None:
    request = sent(FETCH_SNAPSHOT, version, fetch_snapshot_values("c", SnapshotId(9, 2), 3, 0))
    assert request["ReplicaId"] == -1
    [topic] = request["Topics"]
    assert topic["Name"] == "__cluster_metadata" and len(topic["Partitions"]) == 1


def test_the_question_about_the_quorum_names_its_partition() -> None:
    [topic] = sent(DESCRIBE_QUORUM, 2, describe_quorum_values())["Topics"]
    assert topic == {"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}
