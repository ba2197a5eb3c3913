"""The files that tell a Kafka node its place in the cluster."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from brokers.launch.kafka.java_properties import properties_text
from brokers.voters import NodeId, Port, Voter, text_of
from conf.kafka_versions import KAFKA_VERSION, OF_RELEASE, ZOOKEEPER_KAFKA_VERSION, KafkaVersion

Role = Literal["broker", "controller"]
LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "CONTROLLER"
LOOPBACK = "127.0.0.1"
# Kafka's own default (KIP-537). With a shorter session a killed broker would be missed sooner. But a broker ends itself
# if it loses its session while it starts, and with 6 s this happened on busy machines.
ZOOKEEPER_SESSION_MS = 18_000
LOG_FILE_BYTES_MAX, LOG_FILES_KEPT = 50_000_000, 3
_KEY = re.compile(r"[A-Za-z0-9._-]+")
_VERSION = rf"^({'|'.join(map(re.escape, OF_RELEASE))})\.[0-9]{{1,4}}\Z"


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a cluster."""

    node_id: NodeId
    roles: tuple[Role, ...]
    # All controllers, of which the node may be one.
    voters: tuple[Voter, ...]
    # Where clients connect; None for a node that is not a broker.
    port: Port | None = None
    # Where the controller listens; None for a node that is not a controller.
    controller_port: Port | None = None
    rack: str | None = None
    # How many log directories the node has.
    log_dirs: Annotated[int, Meta(ge=1, le=64)] = 1
    heap: Annotated[str, Meta(pattern=r"^[1-9][0-9]*[mg]\Z")] = "512m"
    # Options of the JVM besides its heap. None stands for options with which a node starts quickly.
    jvm_flags: tuple[str, ...] | None = None
    # Kafka's own settings. They override all others.
    overrides: dict[str, str] = {}
    # The ZooKeeper of a broker in ZooKeeper mode, which has no voters; None for a node in KRaft mode.
    zookeeper: str | None = None
    # The version of Kafka with which a node in KRaft mode was made.
    version: Annotated[str, Meta(pattern=_VERSION)] = KAFKA_VERSION

    @property
    def kafka(self) -> KafkaVersion:
        """The version of Kafka that the node runs: of its release the one that isrflow has now."""
        made = self.version if self.zookeeper is None else ZOOKEEPER_KAFKA_VERSION
        return OF_RELEASE[made.rpartition(".")[0]]


def log_dirs(spec: NodeSpec, folder: Path) -> list[Path]:
    """Return the log directories of a node whose files are in ``folder``."""
    return [folder / f"data-{number}" for number in range(spec.log_dirs)]


def server_properties(
    spec: NodeSpec, folder: Path, brokers: int, engine: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Write ``server.properties`` for a node whose files are in ``folder``, in a cluster of ``brokers`` brokers.

    ``engine`` are settings of the engine that leads the node; the node's own overrides replace them.
    Raises ``ValueError`` for an override that is not a valid setting.
    """
    # At least one, because a cluster of controllers alone has no brokers.
    replicas = max(1, min(3, brokers))
    settings = _place_in_kraft(spec, replicas) if spec.zookeeper is None else _place_in_zookeeper(spec)
    settings |= {
        "inter.broker.listener.name": LISTENER,
        "log.dirs": ",".join(map(str, log_dirs(spec, folder))),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(max(1, replicas - 1)),
        "default.replication.factor": str(replicas),
        # Kafka's default of fifty partitions for each internal topic is too many for one machine.
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
    }
    if spec.rack is not None:
        settings["broker.rack"] = spec.rack
    return properties_text(settings | dict(engine) | checked(spec.overrides))


def _place_in_kraft(spec: NodeSpec, replicas: int) -> dict[str, str]:
    listeners = {LISTENER: spec.port, CONTROLLER_LISTENER: spec.controller_port}
    bound = [f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items() if port is not None]
    return {
        "process.roles": ",".join(spec.roles),
        "node.id": str(spec.node_id),
        "controller.quorum.voters": text_of(spec.voters),
        "listeners": ",".join(bound),
        "advertised.listeners": ",".join(bound),
        "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,{CONTROLLER_LISTENER}:PLAINTEXT",
        "controller.listener.names": CONTROLLER_LISTENER,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(max(1, replicas - 1)),
        "share.coordinator.state.topic.num.partitions": "3",
    }


def _place_in_zookeeper(spec: NodeSpec) -> dict[str, str]:
    bound = f"{LISTENER}://{LOOPBACK}:{spec.port}"
    return {
        "broker.id": str(spec.node_id),
        "zookeeper.connect": str(spec.zookeeper),
        "zookeeper.session.timeout.ms": str(ZOOKEEPER_SESSION_MS),
        "listeners": bound,
        "advertised.listeners": bound,
    }


def checked(overrides: dict[str, str]) -> dict[str, str]:
    """Return a node's own settings. Raises ``ValueError`` if one would take more than one line."""
    for key, value in overrides.items():
        if not _KEY.fullmatch(key) or re.search(r"[\r\n]", value):
            raise ValueError(f"{key!r} = {value!r} is not a setting of one line")
    return overrides


def log_properties(log: Path) -> str:
    """Write the settings of the node's own log: one file, and at most ``LOG_FILES_KEPT`` older ones."""
    file = "log4j.appender.file"
    return properties_text(
        {
            "log4j.rootLogger": "INFO, file",
            file: "org.apache.log4j.RollingFileAppender",
            f"{file}.File": str(log),
            f"{file}.MaxFileSize": str(LOG_FILE_BYTES_MAX),
            f"{file}.MaxBackupIndex": str(LOG_FILES_KEPT),
            f"{file}.layout": "org.apache.log4j.PatternLayout",
            f"{file}.layout.ConversionPattern": "[%d] %p %m (%c)%n",
        }
    )
