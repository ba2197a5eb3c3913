"""Kafka nodes of one cluster, in a folder that remembers them."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType

import msgspec

from brokers.launch.kafka.node import KafkaError, KafkaNode
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec, checked
from brokers.launch.kafka.storage import random_uuid
from brokers.launch.ports import free_ports
from brokers.launch.service import START_TIMEOUT_S, STOP_TIMEOUT_S, kill_all
from brokers.voters import Voter
from conf.private_dir import private_dir
from conf.whole_file import replace

FILE = "cluster.json"
NODES_MAX = 64


class _Remembered(msgspec.Struct, frozen=True):
    cluster_id: str
    nodes: tuple[NodeSpec, ...]


def random_cluster_id() -> str:
    """Draw the id of a new cluster."""
    return random_uuid()


def broker_specs(count: int, voters: Sequence[Voter], **rest: object) -> tuple[NodeSpec, ...]:
    """Describe brokers 1 to ``count`` of the controllers ``voters``; ``rest`` goes into each ``NodeSpec``."""
    ports = free_ports(count)
    return tuple(
        NodeSpec(node_id=number, roles=("broker",), voters=tuple(voters), port=port, **rest)  # type: ignore[arg-type]
        for number, port in enumerate(ports, start=1)
    )


def plain_specs(count: int, **rest: object) -> tuple[NodeSpec, ...]:
    """Describe ``count`` brokers of a plain Kafka cluster; the first one is also the controller."""
    (controller_port,) = free_ports(1)
    voters = (Voter(1, LOOPBACK, controller_port),)
    first, *others = broker_specs(count, voters, **rest)
    combined = msgspec.structs.replace(first, roles=("broker", "controller"), controller_port=controller_port)
    return (combined, *others)


class KafkaCluster:
    """The nodes of one folder, started and stopped together."""

    def __init__(self, folder: Path, remembered: _Remembered) -> None:
        self.folder = folder
        self.cluster_id = remembered.cluster_id
        brokers = sum("broker" in spec.roles for spec in remembered.nodes)
        self.nodes = {
            spec.node_id: KafkaNode(spec, folder / f"node-{spec.node_id}", brokers) for spec in remembered.nodes
        }

    @classmethod
    def create(
        cls,
        folder: Path,
        specs: Sequence[NodeSpec],
        cluster_id: str | None = None,
        beside: Mapping[str, bytes] = MappingProxyType({}),
    ) -> "KafkaCluster":
        """Create a cluster in a folder that has none yet. Write the files in ``beside`` first.

        Raises ``KafkaError`` or ``ValueError``.
        """
        ids = [spec.node_id for spec in specs]
        if not 1 <= len(ids) <= NODES_MAX or len(set(ids)) != len(ids):
            raise ValueError(f"a cluster has 1 to {NODES_MAX} nodes, each with an id of its own; these are {ids}")
        written = msgspec.json.encode(_Remembered(cluster_id or random_cluster_id(), tuple(specs)))
        try:
            remembered = msgspec.json.decode(written, type=_Remembered)
        except msgspec.ValidationError as error:
            raise ValueError(f"an invalid node: {error}") from error
        for spec in specs:
            checked(spec.overrides)
        folder = folder.resolve()
        if "," in str(folder):
            raise ValueError(f"the path {folder} has a comma, at which Kafka divides its list of log directories")
        if (folder / FILE).exists():
            raise KafkaError(f"{folder} already has a cluster")
        made = cls(folder, remembered)
        refuse_existing(node.folder for node in made.nodes.values())
        private_dir(folder)
        for name, content in beside.items():
            replace(folder / name, content)
        aside = folder / f"{FILE}.new"
        aside.write_bytes(msgspec.json.format(written))
        try:
            # Like a rename, a link makes the file appear whole. But it never replaces another command's file.
            os.link(aside, folder / FILE)
        except FileExistsError as error:
            raise KafkaError(f"{folder} already has a cluster") from error
        finally:
            aside.unlink(missing_ok=True)
        return made

    @classmethod
    def open(cls, folder: Path) -> "KafkaCluster":
        """Find the cluster that a folder remembers. Raises ``KafkaError``."""
        folder = folder.resolve()
        try:
            return cls(folder, msgspec.json.decode((folder / FILE).read_bytes(), type=_Remembered))
        except FileNotFoundError as error:
            raise KafkaError(f"{folder} has no cluster") from error
        except msgspec.MsgspecError as error:
            raise KafkaError(f"{folder / FILE} cannot be read: {error}") from error

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses as clients' ``bootstrap.servers`` takes them."""
        return ",".join(f"{LOOPBACK}:{node.spec.port}" for node in self.nodes.values() if node.spec.port is not None)

    def format(self) -> None:
        """Format the storage of nodes that have none yet. Raises ``KafkaError``, ``JarsError`` or ``JavaError``."""
        _all(list(self.nodes.values()), lambda node: node.format(self.cluster_id))

    def up(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Format and start the nodes that do not run, and wait until clients can use all. Raises ``ServiceError``.

        If a node does not start, the nodes that this call started are killed.
        """
        self.format()
        stopped = [node for node in self.nodes.values() if node.state == "stopped"]
        try:
            for node in stopped:
                node.start()
            # A call that was killed may have started the others and not seen them run.
            for node in self.nodes.values():
                node.wait_until_started(timeout_s)
            for node in self.nodes.values():
                node.wait_until_led(timeout_s)
        except BaseException:
            kill_all(stopped)
            raise

    def down(self, timeout_s: float = STOP_TIMEOUT_S) -> list[int]:
        """Stop all nodes cleanly, brokers before controllers. Return the ids of nodes that had to be killed."""
        killed: list[int] = []

        def stop(node: KafkaNode) -> None:
            if not node.stop(timeout_s):
                killed.append(node.spec.node_id)

        _all([node for node in self.nodes.values() if "controller" not in node.spec.roles], stop)
        _all([node for node in self.nodes.values() if "controller" in node.spec.roles], stop)
        return sorted(killed)

    def kill(self) -> None:
        """Kill all nodes at once."""
        kill_all(self.nodes.values())

    def delete(self, with_them: Sequence[Path] = ()) -> None:
        """Remove the nodes' data and logs, the files in ``with_them``, and the folder if it is empty then.

        Raises ``KafkaError`` while any node runs.
        """
        running = [node.name for node in self.nodes.values() if node.state != "stopped"]
        if running:
            raise KafkaError(f"still running: {', '.join(running)}")
        remove([*(node.folder for node in self.nodes.values()), self.folder / FILE, *with_them])
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def refuse_existing(paths: Iterable[Path]) -> None:
    """Raise ``KafkaError`` if any path exists, because a cluster may later remove only what it made itself."""
    for path in paths:
        if path.exists():
            raise KafkaError(
                f"{path} already exists and belongs to no cluster: move it, or choose another folder with --dir"
            )


def remove(paths: Iterable[Path]) -> None:
    """Remove the files and folders that exist."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _all(nodes: Sequence[KafkaNode], action: Callable[[KafkaNode], None]) -> None:
    """Do ``action`` for all nodes in parallel. Once all are done, raise the first error."""
    if nodes:
        with ThreadPoolExecutor(len(nodes)) as pool:
            for done in [pool.submit(action, node) for node in nodes]:
                done.result()
