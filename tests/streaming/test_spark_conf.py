"""What Spark is told: the engine's needs, its preferences, and what the user gave."""

from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.kafka.bus import KafkaBus
from conf.layers import SettingsError
from conf.loader import load
from conf.settings import Settings
from streaming.cluster import check_fits
from streaming.sources.interface import source_of
from streaming.spark_conf import SOCKET_DIR_BYTES_MAX, default_master, query_conf

CLUSTER = "spark://a:7077"
LOCAL_DIR = Path("/local")


def conf(*sets: str, master: str = "local[2]", told: dict[str, str] | None = None) -> dict[str, str]:
    return query_conf(load(sets=sets), master, LOCAL_DIR, told or {}, has_local_files=True)


def test_a_default_master_has_a_task_for_each_partition() -> None:
    assert default_master(Settings()) == "local[2]"
    assert default_master(Settings(shuffle_partitions=5)) == "local[5]"


def test_a_local_driver_listens_on_loopback_unless_it_is_told_otherwise() -> None:
    assert [conf()[f"spark.driver.{name}"] for name in ("host", "bindAddress")] == ["127.0.0.1", "127.0.0.1"]
    assert conf("spark.driver.bindAddress=0.0.0.0")["spark.driver.bindAddress"] == "0.0.0.0"
    assert "spark.driver.host" not in conf(master=CLUSTER)
    assert conf("spark.driver.host=b", master=CLUSTER)["spark.driver.host"] == "b"


def test_settings_of_sparks_go_to_spark_and_precede_what_it_was_started_with() -> None:
    assert conf("spark.executor.memory=2g")["spark.executor.memory"] == "2g"
    told = {"spark.executor.memory": "1g", "spark.ui.enabled": "true", "spark.app.name": "run.py"}
    given = conf("spark.executor.memory=2g", told=told)
    assert [given[f"spark.{name}"] for name in ("executor.memory", "ui.enabled", "app.name")] == [
        "2g",
        "true",
        "isrflow",
    ]
    assert conf("spark.app.name=mine", told=told)["spark.app.name"] == "mine"


def test_a_driver_keeps_the_class_path_that_it_was_launched_with() -> None:
    key, told = "spark.driver.extraClassPath", {"spark.driver.extraClassPath": "/ours.jar:/mine.jar"}
    assert conf(f"{key}=/mine.jar", told=told)[key] == told[key]


def test_what_the_engine_must_set_cannot_come_from_spark_submit_either() -> None:
    with pytest.raises(
        SettingsError, match=r"started with spark\.speculation = true, but the engine sets it itself: two"
    ):
        conf(told={"spark.speculation": "true"})
    assert conf(told={"spark.speculation": "false", "spark.driver.memory": "9g"})["spark.speculation"] == "false"


def test_files_are_made_in_java_alone_only_where_the_driver_has_the_class() -> None:
    assert "BareLocal" in conf()["spark.hadoop.fs.file.impl"]
    assert "spark.hadoop.fs.file.impl" not in conf(master=CLUSTER)
    without = query_conf(Settings(), "local[2]", LOCAL_DIR, {}, has_local_files=False)
    assert "spark.hadoop.fs.file.impl" not in without


def test_python_processes_are_reached_by_sockets_where_the_name_of_their_directory_is_short() -> None:
    key = "spark.python.unix.domain.socket"
    assert (conf()[f"{key}.enabled"], conf()[f"{key}.dir"]) == ("true", str(LOCAL_DIR))
    assert conf(f"{key}.enabled=false")[f"{key}.enabled"] == "false"
    assert f"{key}.enabled" not in conf(master=CLUSTER), "another machine has no such directory"
    long = Path("/" + SOCKET_DIR_BYTES_MAX * "x")
    assert f"{key}.enabled" not in query_conf(Settings(), "local[2]", long, {}, has_local_files=True)
    for directory in (Path("/" + (SOCKET_DIR_BYTES_MAX - 1) * "x"), Path("/short")):
        chosen = query_conf(Settings(), "local[2]", long, {}, has_local_files=True, socket_dir=directory)
        assert chosen[f"{key}.dir"] == str(directory)


def test_a_cluster_needs_a_bus_and_a_checkpoint_that_executors_reach(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    embedded, kafka = source_of(bus), source_of(KafkaBus.__new__(KafkaBus))
    bus.close()
    check_fits("local[4]", Settings(), embedded)
    with pytest.raises(SettingsError, match=r"spark\.master is spark://a:7077, but bus data/bus\.db is a file"):
        check_fits(CLUSTER, Settings(checkpoint_dir="hdfs://n/c"), embedded)
    for path in ("", "/shared/checkpoint"):
        with pytest.raises(SettingsError, match=f"checkpoint.dir is '{path}': expected a URI"):
            check_fits(CLUSTER, Settings(bus="kafka://a:9092", checkpoint_dir=path), kafka)
    for uri in ("file:///shared/c", "hdfs://n:8020/c", "s3a://bucket/c"):
        check_fits(CLUSTER, Settings(bus="kafka://a:9092", checkpoint_dir=uri), kafka)
    with pytest.raises(SettingsError, match=r"max\.bytes\.per\.batch is 67108865: expected at most 67108864"):
        check_fits(CLUSTER, Settings(checkpoint_dir="hdfs://n/c", max_bytes_per_batch=2**26 + 1), kafka)
