"""What this machine needs for Kafka's nodes and tools: their jars, and archives of the classes that they load."""

import fcntl
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from msgspec.structs import replace

from brokers.launch.kafka.cluster import KafkaCluster, broker_specs, plain_specs
from brokers.launch.kafka.node import JVM_FLAGS, class_archive
from brokers.launch.kafka.tools import TOOLS, TOPICS, run_tool, tools_archive
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.ports import free_ports
from brokers.launch.process import DetachedProcess
from brokers.launch.service import PROCESS_FILE
from conf.cache import cache_dir
from conf.class_archive import ClassArchive
from conf.jars import Jar, fetch
from conf.java import java_home
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, KafkaVersion
from conf.work_dir import work_dir

LOCK = "kafka-classes.lock"
# The node writes the archive when it stops, which takes long on a busy machine.
STOP_TIMEOUT_S = 180.0
CLIENT_TIMEOUT_S = 120.0


def prepare(version: str = KAFKA_VERSION, fetched: Callable[[Jar], None] = lambda jar: None) -> Path:
    """Fetch the jars of a node, write the archive of its classes if there is none, and return the archive.

    Writing it runs two nodes, which takes 20 s. Calls ``fetched`` for each fetched jar.
    Raises ``JarsError``, ``JavaError``, ``ServiceError`` or ``RuntimeError``.
    """
    kafka = KAFKA_VERSIONS[version]
    fetch(kafka.jars, fetched)
    archive = class_archive(version, java_home())
    return _written(archive, lambda: _write(kafka, archive))


def prepare_tools(fetched: Callable[[Jar], None] = lambda jar: None) -> Path:
    """Fetch the jars of Kafka's admin tools, write the archive of their classes if there is none, and return it.

    Writing it runs a node and a tool, which takes 4 s. Otherwise like ``prepare``; it may also raise ``ToolError``.
    """
    prepare(fetched=fetched)
    fetch(TOOLS, fetched)
    archive = tools_archive(java_home())
    return _written(archive, lambda: _write_tools(archive))


def _written(archive: ClassArchive, write: Callable[[], None]) -> Path:
    """Call ``write`` if there is no archive yet. If two processes call this at once, one writes and the other waits."""
    with (cache_dir() / LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.path is None:
            write()
    assert archive.path is not None, "it was just written"
    return archive.path


def _write_tools(archive: ClassArchive) -> None:
    with archive.written() as options, work_dir(cache_dir(), end_services) as folder:
        cluster = KafkaCluster.create(folder / "kafka", plain_specs(1))
        try:
            cluster.up()
            run_tool(TOPICS, cluster.bootstrap, ["--describe"], archive_flags=options)
        finally:
            cluster.kill()


def _write(kafka: KafkaVersion, archive: ClassArchive) -> None:
    with archive.written() as options, ExitStack() as stack:
        folder = stack.enter_context(work_dir(cache_dir(), end_services))
        if "zookeeper" in kafka.modes:
            zookeeper = ZookeeperProcess(free_ports(1)[0], folder / "zookeeper")
            zookeeper.start()
            stack.callback(zookeeper.kill)
            zookeeper.wait_until_started()
            first, other = broker_specs(2, (), zookeeper=zookeeper.address)
        else:
            first, other = plain_specs(2, version=kafka.number)
        writing = replace(first, jvm_flags=(*JVM_FLAGS, *options))
        cluster = KafkaCluster.create(folder / "kafka", (writing, other))
        stack.callback(cluster.kill)
        cluster.up()
        try:
            _serve_clients(cluster.bootstrap)
        except KafkaException as error:
            raise RuntimeError(f"the nodes do not serve clients: {error}") from error
        if cluster.down(STOP_TIMEOUT_S):
            raise RuntimeError(f"the node did not write its classes in {STOP_TIMEOUT_S:.0f} s")


def end_services(left: Path) -> None:
    """End the nodes that a killed process has left running in its folder."""
    for file in left.rglob(PROCESS_FILE):
        DetachedProcess(file).kill()


def _serve_clients(bootstrap: str) -> None:
    """Have brokers do their most common work: replicate, and serve producers, transactions and a group."""
    named: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    # Each broker leads a partition of which the other one has a replica.
    topic = NewTopic("served", 2, replica_assignment=[[1, 2], [2, 1]])
    admin = AdminClient(named)
    for created in admin.create_topics([topic]).values():
        created.result(CLIENT_TIMEOUT_S)
    producer = Producer({**named, "transactional.id": "served"})
    producer.init_transactions(CLIENT_TIMEOUT_S)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce("served", b"", partition=partition)
        end(CLIENT_TIMEOUT_S)
    consumer = Consumer({**named, "group.id": "served", "auto.offset.reset": "earliest"})
    consumer.subscribe(["served"])
    try:
        if len(consumer.consume(2, CLIENT_TIMEOUT_S)) < 2:
            raise RuntimeError(f"the nodes did not serve a group in {CLIENT_TIMEOUT_S:.0f} s")
    finally:
        # This also commits.
        consumer.close()
