"""The storage of a new broker, which is written here and not by Kafka's tool."""

from pathlib import Path

import pytest

from brokers.launch.kafka.cluster import KafkaCluster, broker_specs
from brokers.launch.kafka.preparing import prepare
from brokers.launch.service import ServiceError
from brokers.voters import Voter

pytestmark = pytest.mark.kraft
NOBODY = (Voter(100, "127.0.0.1", 9),)


def named(folder: Path) -> dict[str, str]:
    """Read what names a log directory."""
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def formatted(folder: Path, overrides: dict[str, str], log_dirs: int = 1) -> KafkaCluster:
    prepare()
    cluster = KafkaCluster.create(folder, broker_specs(1, NOBODY, overrides=overrides, log_dirs=log_dirs))
    cluster.format()
    return cluster


def test_log_directories_are_named_as_by_kafkas_tool(tmp_path: Path) -> None:
    """A broker with a place of its own in its settings is left to the tool."""
    ours, by_tool = formatted(tmp_path / "a", {}), formatted(tmp_path / "b", {"log.dirs": f"{tmp_path}/elsewhere"})
    [folder] = ours.nodes[1].data
    found, expected = named(folder), named(tmp_path / "elsewhere")
    assert found["cluster.id"] == ours.cluster_id
    assert expected["cluster.id"] == by_tool.cluster_id
    assert len(found["directory.id"]) == len(expected["directory.id"]) == 22
    drawn = ("cluster.id", "directory.id")
    assert found | dict.fromkeys(drawn, "") == expected | dict.fromkeys(drawn, "")


def test_the_tool_names_what_has_no_name_and_leaves_the_rest(tmp_path: Path) -> None:
    cluster = formatted(tmp_path / "a", {}, log_dirs=2)
    first, second = cluster.nodes[1].data
    before = named(first), named(second)
    assert before[0]["directory.id"] != before[1]["directory.id"]
    (second / "meta.properties").unlink()
    cluster.format()
    assert named(first) == before[0]
    assert named(second) | {"directory.id": ""} == before[1] | {"directory.id": ""}
    assert named(second)["directory.id"] not in {one["directory.id"] for one in before}


def test_a_broker_with_a_setting_that_kafka_refuses_says_which(tmp_path: Path) -> None:
    cluster = formatted(tmp_path / "a", {"num.io.threads": "many"})
    with pytest.raises(ServiceError, match=r"Invalid value many for configuration num\.io\.threads"):
        cluster.up()
