"""Which versions of Kafka ``isrflow cluster up`` takes, and in which modes and at which levels."""

from pathlib import Path

from tests.support.cluster_command import on_cluster


def test_zookeeper_and_its_version_go_together(cluster_folder: Path) -> None:
    for wrong in (["--zookeeper"], ["--kafka", "4.1.0", "--zookeeper"]):
        code, said = on_cluster(cluster_folder, "up", *wrong)
        assert (code, "--zookeeper needs --kafka 3.9.1" in said) == (2, True)
    for wrong in (["--secure"], ["--metadata-version", "3.9"]):
        code, said = on_cluster(cluster_folder, "up", "--kafka", "3.9.1", "--zookeeper", *wrong)
        assert (code, "--zookeeper excludes" in said) == (2, True)
    assert not cluster_folder.exists()


def test_a_version_that_cannot_be_run_is_refused_with_those_that_can(cluster_folder: Path) -> None:
    code, said = on_cluster(cluster_folder, "up", "--kafka", "4.0.0")
    assert (code, "is not one of '3.9.1', '4.0.2', '4.1.0', '4.2.1'" in said) == (2, True)
    for version, newer in (([], "4.2"), (["--kafka", "4.0.2"], "4.1"), (["--kafka", "3.9.1"], "4.0")):
        code, said = on_cluster(cluster_folder, "up", *version, "--metadata-version", newer)
        assert (code, f"--metadata-version {newer}: brokers of Kafka " in said) == (2, True)
    assert not cluster_folder.exists()
