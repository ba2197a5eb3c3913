"""A node's properties file, and invalid clusters."""

from pathlib import Path

import msgspec
import pytest

from brokers.launch.kafka.cluster import KafkaCluster, broker_specs, plain_specs, random_cluster_id
from brokers.launch.kafka.java_properties import properties_text
from brokers.launch.kafka.node import KafkaError
from brokers.launch.kafka.properties import NodeSpec, server_properties
from brokers.voters import Voter
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS


def read(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_broker_asks_the_controllers_that_were_named(tmp_path: Path) -> None:
    (spec, _) = broker_specs(2, [Voter(100, "127.0.0.1", 9093), Voter(101, "127.0.0.1", 9094)], rack="a", log_dirs=2)
    written = read(server_properties(spec, tmp_path, 2))
    assert written["process.roles"] == "broker"
    assert written["controller.quorum.voters"] == "100@127.0.0.1:9093,101@127.0.0.1:9094"
    assert written["listeners"] == f"PLAINTEXT://127.0.0.1:{spec.port}"
    assert written["log.dirs"] == f"{tmp_path}/data-0,{tmp_path}/data-1"
    assert (written["broker.rack"], written["default.replication.factor"]) == ("a", "2")


def test_engine_settings_override_the_clusters_size_and_typed_ones_override_both(tmp_path: Path) -> None:
    (spec,) = broker_specs(1, [Voter(100, "127.0.0.1", 9093)], overrides={"num.partitions": "9"})
    written = read(server_properties(spec, tmp_path, 3, {"default.replication.factor": "2", "num.partitions": "6"}))
    assert (written["default.replication.factor"], written["num.partitions"]) == ("2", "9")


def test_the_first_node_of_a_plain_cluster_is_its_controller(tmp_path: Path) -> None:
    first, second = plain_specs(2)
    written = read(server_properties(first, tmp_path, 2))
    assert written["process.roles"] == "broker,controller"
    assert written["listeners"].split(",")[1] == f"CONTROLLER://127.0.0.1:{first.controller_port}"
    assert second.roles == ("broker",)
    assert second.voters == first.voters == (Voter(1, "127.0.0.1", first.controller_port or 0),)


def test_overrides_win_and_are_one_line_each(tmp_path: Path) -> None:
    (spec,) = plain_specs(1, overrides={"default.replication.factor": "1", "some.path": "a\\b"})
    written = read(server_properties(spec, tmp_path, 3))
    assert written["default.replication.factor"] == "1"
    assert written["some.path"] == "a\\\\b"
    for bad in ({"a": "1\nprocess.roles=controller"}, {"a b": "1"}, {"a\nb": "1"}):
        with pytest.raises(ValueError, match="is not a setting of one line"):
            server_properties(msgspec.structs.replace(spec, overrides=bad), tmp_path, 1)


def test_a_folder_remembers_its_cluster(tmp_path: Path) -> None:
    made = KafkaCluster.create(tmp_path / "c", plain_specs(2))
    found = KafkaCluster.open(tmp_path / "c")
    assert found.cluster_id == made.cluster_id
    assert [node.spec for node in found.nodes.values()] == [node.spec for node in made.nodes.values()]
    assert found.bootstrap == ",".join(f"127.0.0.1:{node.spec.port}" for node in made.nodes.values())
    with pytest.raises(KafkaError, match="already has a cluster"):
        KafkaCluster.create(tmp_path / "c", plain_specs(1))
    with pytest.raises(KafkaError, match="has no cluster"):
        KafkaCluster.open(tmp_path)
    (tmp_path / "c" / "cluster.json").write_text('{"cluster_id": 1}')
    with pytest.raises(KafkaError, match=r"cluster\.json cannot be read: .*cluster_id"):
        KafkaCluster.open(tmp_path / "c")


def test_an_invalid_cluster_is_refused(tmp_path: Path) -> None:
    (spec,) = plain_specs(1)
    for specs in ([], [spec, spec]):
        with pytest.raises(ValueError, match="each with an id of its own"):
            KafkaCluster.create(tmp_path, specs)
    for wrong in ({"heap": "lots"}, {"log_dirs": 0}, {"node_id": -1}, {"port": 0}, {"version": "5.0.0"}):
        with pytest.raises(ValueError, match=f"an invalid node: .*{next(iter(wrong))}"):
            KafkaCluster.create(tmp_path, [msgspec.structs.replace(spec, **wrong)])
    assert list(tmp_path.iterdir()) == []


def test_a_node_runs_the_chosen_version_and_in_zookeeper_mode_the_one_that_knows_it() -> None:
    for version in KAFKA_VERSIONS.values():
        assert plain_specs(1, version=version.number)[0].kafka == version
    assert plain_specs(1)[0].kafka.number == KAFKA_VERSION
    (spec,) = broker_specs(1, (), zookeeper="127.0.0.1:2181")
    assert "zookeeper" in spec.kafka.modes


def test_a_node_of_an_earlier_fix_release_runs_the_one_that_there_is_now(tmp_path: Path) -> None:
    """A cluster that an older isrflow made names a version whose jars this one does not have."""
    (spec,) = plain_specs(1)
    KafkaCluster.create(tmp_path, [msgspec.structs.replace(spec, version="4.1.0")])
    (node,) = KafkaCluster.open(tmp_path).nodes.values()
    assert node.spec.kafka.number == KAFKA_VERSION == "4.1.2"


def test_a_cluster_id_is_a_uuid_in_kafkas_form() -> None:
    assert len(random_cluster_id()) == 22
    assert random_cluster_id() != random_cluster_id()


def test_a_controller_alone_listens_for_brokers_only(tmp_path: Path) -> None:
    spec = NodeSpec(node_id=9, roles=("controller",), voters=(Voter(9, "127.0.0.1", 9093),), controller_port=9093)
    assert read(server_properties(spec, tmp_path, 0))["listeners"] == "CONTROLLER://127.0.0.1:9093"


def test_controllers_without_brokers_have_replication_factors_that_kafka_takes(tmp_path: Path) -> None:
    spec = NodeSpec(node_id=1, roles=("controller",), voters=(Voter(1, "127.0.0.1", 9093),), controller_port=9093)
    told = read(server_properties(spec, tmp_path, 0))
    assert {value for name, value in told.items() if name.endswith("replication.factor")} == {"1"}


def test_a_properties_file_is_ascii_and_escaped_as_java_reads_it() -> None:
    text = properties_text({"rack": "K\u00f6ln \U0001f600", "path": "a\\b", "first": " space"})
    assert text == "rack=K\\u00f6ln \\ud83d\\ude00\npath=a\\\\b\nfirst=\\ space\n"
    assert text.isascii()
