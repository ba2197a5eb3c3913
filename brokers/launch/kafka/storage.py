"""The storage of a new broker, written without a Java process.

Kafka's own tool takes half a second of CPU time for each broker. It writes two files into each log directory. The first
names the directory, and the second has the first records of a metadata log, which only controllers read. So only
controllers, and storage that is partly formatted, need the tool.
"""

import base64
import os
from collections.abc import Sequence
from pathlib import Path

from brokers.launch.kafka.java_properties import properties_text
from brokers.launch.kafka.properties import NodeSpec
from conf.private_dir import private_dir
from conf.whole_file import replace

META_PROPERTIES = "meta.properties"
# Settings of where a node's storage is, or whose it is. A node that overrides one of them needs Kafka's tool.
_PLACES = frozenset({"log.dir", "log.dirs", "metadata.log.dir", "node.id", "broker.id", "process.roles"})


def random_uuid() -> str:
    """Draw an id in Kafka's form. Like Kafka's own ids, it never begins with a dash, as options do."""
    while (drawn := base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")).startswith("-"):
        pass
    return drawn


def is_formatted(data: Sequence[Path]) -> bool:
    """Return whether all log directories are formatted."""
    return all((folder / META_PROPERTIES).exists() for folder in data)


def can_be_written(spec: NodeSpec, data: Sequence[Path]) -> bool:
    """Return whether ``write`` can replace Kafka's tool for a node."""
    return (
        spec.roles == ("broker",)
        and _PLACES.isdisjoint(spec.overrides)
        and not any((folder / META_PROPERTIES).exists() for folder in data)
    )


def write(spec: NodeSpec, data: Sequence[Path], cluster_id: str) -> None:
    """Make a broker's log directories, each with an id of its own. Raises ``OSError``."""
    for folder in data:
        named = {"version": "1", "cluster.id": cluster_id, "node.id": str(spec.node_id), "directory.id": random_uuid()}
        private_dir(folder)
        replace(folder / META_PROPERTIES, properties_text(named))
