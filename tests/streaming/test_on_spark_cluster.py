"""Shards on the executors of a Spark cluster, with the checkpoint at a URI that all of them reach.

What they decide, and what a lost executor and a new worker change.
"""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import cli
from bus.kafka.bus import KafkaBus
from conf.java import java_home
from tests.streaming.feeding import assert_as_by_rules, random_events
from tests.support.engine import START_TIMEOUT_S, Engine, decided
from tests.support.spark_cluster import LOOPBACK, SPARK_HOME, SparkCluster, class_path, jvm_options
from tests.support.waiting import wait_until
from tests.support.wheel import libraries_alone

pytestmark = [pytest.mark.spark, pytest.mark.kafka_bus]

EVENTS = 4_000
TASKS = 2


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark-cluster")


@pytest.fixture(scope="module")
def cluster(directory: Path) -> Iterator[SparkCluster]:
    cluster = SparkCluster(directory)
    try:
        cluster.start(TASKS)
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def checkpoint(directory: Path) -> Path:
    """Return the checkpoint, which the driver and the executors reach by a URI as on a file system that they share."""
    return directory / "shared" / "checkpoint"


@pytest.fixture(scope="module")
def bus(kafka_servers: str) -> Iterator[KafkaBus]:
    bus = KafkaBus(f"kafka://{kafka_servers}/{uuid.uuid4().hex[:8]}")
    yield bus
    bus.close()


def settings_of(bus: KafkaBus, checkpoint: Path) -> tuple[str, ...]:
    """Return the settings of an engine on the cluster, but not its master, the executors' memory and their Python."""
    return (
        f"bus={bus.address}",
        f"checkpoint.dir={checkpoint.as_uri()}",
        f"spark.driver.host={LOOPBACK}",
        f"spark.driver.bindAddress={LOOPBACK}",
        f"spark.executor.extraClassPath={class_path()}",
        f"spark.executor.extraJavaOptions={jvm_options()}",
        f"shuffle.partitions={TASKS}",
        # On Kafka each tick is a batch. Executors and workers take long to start.
        "tick.idle.interval.ms=5000",
        "controller.quorum.fetch.timeout.ms=6000",
        "shards=4",
        "pages=3",
    )


@pytest.fixture(scope="module")
def engine(cluster: SparkCluster, bus: KafkaBus, checkpoint: Path, directory: Path) -> Iterator[Engine]:
    """An engine whose executors have a Python without isrflow's own modules."""
    engine = Engine(
        directory,
        f"spark.master={cluster.master}",
        f"spark.pyspark.python={libraries_alone(directory / 'python')}",
        "spark.executor.memory=512m",
        *settings_of(bus, checkpoint),
        cwd=directory,
    )
    try:
        engine.wait_ready(bus)
        yield engine
        assert engine.stop() == 0
    finally:
        engine.kill()


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    return random_events(seed=11, count=EVENTS)


def test_executors_decide_the_same_bytes_as_a_replay(
    engine: Engine, bus: KafkaBus, cluster: SparkCluster, log: list[bytes]
) -> None:
    for first in range(0, 600, 200):
        decided(bus, bus.publish_own(log[first : first + 200]), engine=engine)
    assert len(cluster.executors()) == TASKS
    assert_as_by_rules(bus)


def test_an_executor_that_dies_in_a_batch_loses_and_doubles_nothing(
    engine: Engine, bus: KafkaBus, cluster: SparkCluster, checkpoint: Path, log: list[bytes]
) -> None:
    victim = cluster.executors()[0]
    last = bus.publish_own(log[600:3_000])
    wait_until(lambda: planned_to(checkpoint) >= last, "the batch", START_TIMEOUT_S)
    assert bus.decided_seq() < last
    victim.kill()
    decided(bus, last, engine=engine)
    wait_until(lambda: len(cluster.executors()) == TASKS, "another executor", START_TIMEOUT_S)
    assert victim not in cluster.executors()
    assert_as_by_rules(bus)
    assert "moved the checkpoint aside" not in engine.log.read_text()


def test_a_worker_that_is_added_goes_on_when_the_others_are_gone(
    engine: Engine, bus: KafkaBus, cluster: SparkCluster, log: list[bytes]
) -> None:
    former = list(cluster.workers)
    added = cluster.add_worker()
    wait_until(lambda: bool(cluster.executors(added)), "an executor on the new worker", START_TIMEOUT_S)
    for process in (*cluster.executors(*former), *former):
        process.kill()
    decided(bus, bus.publish_own(log[3_000:3_300]), engine=engine)
    assert_as_by_rules(bus)
    assert "moved the checkpoint aside" not in engine.log.read_text()


def planned_to(checkpoint: Path) -> int:
    """Return the seq of the newest planned event."""
    offsets = [file for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()]
    newest = max(offsets, key=lambda file: int(file.name))
    return int(msgspec.json.decode(newest.read_bytes().splitlines()[-1])["seq"])


def submit(master: str, *options: str) -> tuple[str, ...]:
    """Return the command of docs/running.md#a-spark-cluster, with more options of spark-submit."""
    values = {"JAVA_HOME": java_home(), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": SPARK_HOME}
    environment = (f"{name}={value}" for name, value in (values | {"SPARK_LOCAL_IP": LOOPBACK}).items())
    main = Path(cli.__file__).with_name("__main__.py")
    spark_submit = str(SPARK_HOME / "bin" / "spark-submit")
    return ("env", *environment, spark_submit, "--master", master, *options, str(main), "run")


def test_an_engine_that_spark_submit_starts_decides_on_the_executors_of_its_master(
    engine: Engine, bus: KafkaBus, cluster: SparkCluster, checkpoint: Path, directory: Path, log: list[bytes]
) -> None:
    assert engine.stop() == 0
    wait_until(lambda: not cluster.executors(), "the former engine's executors to end")
    driver = ("--driver-memory", "512m", "--driver-java-options", jvm_options(), "--driver-class-path", class_path())
    command = submit(cluster.master, *driver, "--conf", "spark.executor.memory=512m")
    output = directory / "submitted.log"
    submitted = Engine(directory, *settings_of(bus, checkpoint), command=command, log=output, cwd=directory)
    try:
        # The first events once more, so that this test may run alone.
        decided(bus, bus.publish_own(log[:600]), START_TIMEOUT_S, submitted)
        assert cluster.executors()
        assert_as_by_rules(bus)
        # It continues from the checkpoint of the former engine.
        assert "moved the checkpoint aside" not in output.read_text()
    finally:
        submitted.kill()


def test_spark_submit_names_the_master_and_an_embedded_bus_is_refused_there(tmp_path: Path) -> None:
    sets = ("--set", f"bus=sqlite:{tmp_path / 'bus.db'}", "--set", "metrics.port=-1")
    done = subprocess.run(
        [*submit("spark://127.0.0.1:1"), *sets],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
    )
    assert done.returncode == 2
    # spark-submit prints what a Python program writes to standard error on its own standard output.
    assert "Error: spark.master is spark://127.0.0.1:1, but bus " in done.stdout
    assert "expected a bus on Kafka (bus = kafka://host:port), or spark.master = local[N]" in done.stdout
