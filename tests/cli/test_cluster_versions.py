"""Which versions of Kafka ``isrflow cluster up`` takes, and in which modes and at which levels."""

from itertools import pairwise
from pathlib import Path

import pytest

from cli.cluster.metadata_version import first_requests, level_of
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, OF_RELEASE, ZOOKEEPER_KAFKA_VERSION, KafkaVersion
from state.features import METADATA_VERSIONS
from tests.support.cluster_command import on_cluster


def test_zookeeper_and_its_version_go_together(cluster_folder: Path) -> None:
    for wrong in (["--zookeeper"], ["--kafka", KAFKA_VERSION, "--zookeeper"]):
        code, said = on_cluster(cluster_folder, "up", *wrong)
        assert (code, f"--zookeeper needs --kafka {ZOOKEEPER_KAFKA_VERSION}" in said) == (2, True)
    for wrong in (["--secure"], ["--metadata-version", "3.9"]):
        code, said = on_cluster(cluster_folder, "up", "--kafka", ZOOKEEPER_KAFKA_VERSION, "--zookeeper", *wrong)
        assert (code, "--zookeeper excludes" in said) == (2, True)
    assert not cluster_folder.exists()


def test_a_version_that_cannot_be_run_is_refused_with_those_that_can(cluster_folder: Path) -> None:
    code, said = on_cluster(cluster_folder, "up", "--kafka", "4.0.0")
    assert (code, f"is not one of {', '.join(map(repr, KAFKA_VERSIONS))}" in said) == (2, True)
    for older, newer in pairwise(METADATA_VERSIONS):
        kafka = OF_RELEASE[older].number
        code, said = on_cluster(cluster_folder, "up", "--kafka", kafka, "--metadata-version", newer)
        assert (code, f"--metadata-version {newer}: brokers of Kafka {kafka} support {older}" in said) == (2, True)
    assert not cluster_folder.exists()


@pytest.mark.parametrize("kafka", KAFKA_VERSIONS.values(), ids=KAFKA_VERSIONS)
def test_a_new_cluster_of_each_version_has_a_level_that_its_brokers_support(kafka: KafkaVersion) -> None:
    level = level_of(kafka.number, None)
    assert level == (None if kafka.number == KAFKA_VERSION else METADATA_VERSIONS[kafka.release])


@pytest.mark.parametrize(
    ("level", "is_new_bus", "needs"),
    [(None, True, [2]), (None, False, []), (25, True, []), (30, False, [2])],
)
def test_a_new_bus_is_raised_for_eligible_leader_replicas_and_any_bus_for_newer_metadata(
    level: int | None, is_new_bus: bool, needs: list[int]
) -> None:
    asked = first_requests(level, is_new_bus=is_new_bus)
    assert [one["level"] for one in asked if one["kind"] == "raise_level"] == needs
    assert [one["values"] for one in asked if one["kind"] == "alter_entity"] == (
        [] if level is None else [{"metadata.version": level}]
    )
