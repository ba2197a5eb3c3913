"""Settings in brokers' files that the engine's values overrule are refused, with the place where they belong."""

from pathlib import Path

import pytest

from conf.kafka_versions import ZOOKEEPER_KAFKA_VERSION
from tests.support.cluster_command import on_cluster


@pytest.mark.parametrize(
    "options", [[], ["--voters", "100@127.0.0.1:1"], ["--kafka", ZOOKEEPER_KAFKA_VERSION, "--zookeeper"]]
)
@pytest.mark.parametrize("setting", ["min.insync.replicas=2", "unclean.leader.election.enable=true"])
def test_a_led_cluster_does_not_take_them_for_its_brokers(
    cluster_folder: Path, options: list[str], setting: str
) -> None:
    code, said = on_cluster(cluster_folder, "up", *options, "--set", setting)
    name, _, value = setting.partition("=")
    assert code == 2, said
    assert f"'{name} = {value}' into the engine's file (--conf)" in said
    assert not cluster_folder.exists()
