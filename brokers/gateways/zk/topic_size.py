"""The limit on the size of a topic's znode.

A topic's assignment is one znode, and ZooKeeper ends the connection of a client that sends it more than a megabyte
(``jute.maxbuffer``). The gateway could then write nothing at all, and no partition would get a leader. So it refuses
what would make a znode too large, before it asks the engine.
"""

from collections.abc import Collection, Iterable, Mapping

from brokers.gateways.zk.cluster_view import ClusterView, Place, TopicView

# ZooKeeper takes 1,048,575 bytes. A znode of more than ``session.BYTES_AT_ONCE`` has a transaction to itself.
ZNODE_BYTES_MAX = 1_000_000
# The names of the fields, and the topic's id.
_FRAME_BYTES = 200
# Quotes, a colon, brackets and a comma around a number and a list.
_ENTRY_BYTES = 6


def entry_bytes(number: int, replicas: Iterable[int]) -> int:
    """Return how many bytes a partition with these replicas takes in a list of partitions."""
    return len(str(number)) + _ENTRY_BYTES + sum([len(str(replica)) + 1 for replica in replicas])


def partition_bytes(number: int, replicas: Iterable[int], adding: Collection[int], removing: Collection[int]) -> int:
    """Return how many bytes a partition takes in its topic's znode. A moving partition is in several lists."""
    return entry_bytes(number, replicas) + sum([entry_bytes(number, some) for some in (adding, removing) if some])


def topic_bytes(topic: TopicView) -> int:
    """Return how large a topic's znode is: the size of ``znodes.topic_text``, or slightly more."""
    return _FRAME_BYTES + sum(
        [
            partition_bytes(number, one.replicas, one.adding_replicas, one.removing_replicas)
            for number, one in topic.partitions.items()
        ]
    )


def assigned_bytes(assignments: Mapping[int, Collection[int]]) -> int:
    """Return how many bytes partitions with these replicas take."""
    return sum([entry_bytes(number, replicas) for number, replicas in assignments.items()])


def placed_bytes(view: ClusterView, partitions: int, total: int, factor: int) -> int:
    """Return how many bytes new partitions take at most, in a topic of ``total``, wherever their replicas are."""
    longest = max(map(len, map(str, view.brokers)), default=1)
    # The engine refuses more replicas than there are brokers.
    return partitions * (len(str(total)) + _ENTRY_BYTES + min(factor, len(view.brokers)) * (longest + 1))


def bytes_after_moves(topic: TopicView, moves: Mapping[int, Collection[int]]) -> int:
    """Return how large a topic's znode is once these partitions move to other replicas."""
    size = topic_bytes(topic)
    for number, target in moves.items():
        held = topic.partitions.get(number)
        if held is not None:
            adding = [replica for replica in target if replica not in held.replicas]
            removing = [replica for replica in held.replicas if replica not in target]
            size += partition_bytes(number, [*target, *removing], adding, removing)
            size -= partition_bytes(number, held.replicas, held.adding_replicas, held.removing_replicas)
    return size


def complaints_about_moves(view: ClusterView, moves: Mapping[Place, Collection[int]]) -> dict[str, str]:
    """Return a complaint about each topic whose znode the moves would make too large."""
    by_topic: dict[str, dict[int, Collection[int]]] = {}
    for place, replicas in moves.items():
        by_topic.setdefault(place.topic, {})[place.partition] = replicas
    complaints = {}
    for name, moved in by_topic.items():
        topic = view.topics.get(name)
        complaint = None if topic is None else complaint_about(name, bytes_after_moves(topic, moved))
        if complaint is not None:
            complaints[name] = f"{complaint}: move fewer partitions at a time"
    return complaints


def complaint_about(topic: str, size: int) -> str | None:
    """Return the complaint that a topic's znode would be too large; None if it would not."""
    if size <= ZNODE_BYTES_MAX:
        return None
    return f"{topic}: its znode in ZooKeeper would have up to {size} bytes, and {ZNODE_BYTES_MAX} are allowed"
