"""The stories that are played, and where."""

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient

from brokers.launch.kafka.zookeeper import ZookeeperProcess
from tests.real_kafka.stock_requests.player import played
from tests.scenarios.story import Story, parse, path_of
from tests.support.waiting import TIMEOUT_S

NAMES = (
    "deletion/deleted",
    "deletion/waits_for_a_dead_broker",
    "elections/leader_dies",
    "elections/many_partitions",
    "elections/nobody_left",
    "elections/preferred",
    "reassign/all_replicas",
    "reassign/cancelled",
    "reassign/one_replica",
    "reassign/removed_broker_is_away",
    "shutdown/comes_back",
    "topics/created_by_assignment",
    "topics/more_partitions_by_assignment",
)


def story_named(name: str) -> Story:
    """Return the blocks of a story in which something is asked or happens."""
    story = parse(name, path_of(name).read_text("utf-8"))
    return story._replace(blocks=tuple(played(story)))


@contextmanager
def root_in(server: ZookeeperProcess, name: str) -> Iterator[tuple[str, KazooClient]]:
    """Make a root for a cluster of its own, and yield its address and a client in it."""
    root = name.replace("/", "-")
    outer = KazooClient(hosts=server.address)
    outer.start(timeout=TIMEOUT_S)
    outer.ensure_path(f"/{root}")
    outer.stop()
    outer.close()
    client = KazooClient(hosts=f"{server.address}/{root}", timeout=30)
    client.start(timeout=TIMEOUT_S)
    try:
        yield f"{server.address}/{root}", client
    finally:
        client.stop()
        client.close()
