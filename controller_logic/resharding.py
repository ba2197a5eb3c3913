"""The same state in another number of shards.

The problem: a cluster grows, and needs more shards than it began with. Its decisions must go on as if it always had
that many. To decide the whole log once more would give that state, but a log of months takes too long.

The insight: a shard's state has only three kinds of things. Each has a rule that does not depend on how many shards
there were before.

    what all shards share        brokers, settings, quorum, clock    copied from shard 0 to every shard
    what belongs to a topic      its partitions, what is due for it  moved to the shard that its name gives
    what a shard counts          totals, the backlog of brokers      counted once more from the topics that it has now

ACLs and entities (quotas, tokens, features) are only in shard 0, and stay there. A test compares the result with the
bytes of an engine that had the new number of shards from its first event.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from controller_logic.working_state import WorkingState
from controller_logic.working_topic import WorkingTopic
from state.cluster import Cluster, MappedTopics, State, Totals, counted
from state.ids import shard_of
from state.partition import Topic
from state.policy import Policy


def resharded(clusters: Sequence[Cluster], topics: Iterable[Topic], shards: int) -> list[State]:
    """Return a state in ``shards`` shards that decides as the given one does.

    ``clusters`` are the cluster parts of all shards. What they share is taken from shard 0, because that shard writes
    the decisions that all shards make alike. Each shard's counts are computed from its topics.
    """
    shared = replace(clusters[0], shards=shards, watermarks_due=(), deletions_due=(), totals=Totals(), backlog={})
    watermarks = [one for cluster in clusters for one in cluster.watermarks_due]
    deletions = [one for cluster in clusters for one in cluster.deletions_due]
    held: list[dict[str, Topic]] = [{} for _ in range(shards)]
    for topic in topics:
        held[shard_of(topic.topic, shards)][topic.topic] = topic
    others = replace(shared, acls={}, entities={})
    return [
        _counted(replace(others if shard else shared, shard=shard), MappedTopics(of), watermarks, deletions)
        for shard, of in enumerate(held)
    ]


def _counted(cluster: Cluster, topics: MappedTopics, watermarks: list[tuple[str, int]], deletions: list[str]) -> State:
    """Return one shard's state with its counts, and with what is due in it of all shards' watermarks and deletions."""
    totals, backlog = Totals(), Counter[int]()
    for topic in WorkingState(State(cluster, topics), Policy(), {}).topics():
        if not topic.is_deleting:
            totals += _totals_of(topic)
            backlog.update(broker for partition in topic.partitions for broker in partition.backlog)
    own = replace(
        cluster,
        watermarks_due=tuple(sorted(one for one in watermarks if cluster.holds(one[0]))),
        deletions_due=tuple(sorted(one for one in deletions if cluster.holds(one))),
        totals=totals,
        backlog=dict(sorted(backlog.items())),
    )
    return State(own, topics)


def _totals_of(topic: WorkingTopic) -> Totals:
    columns = [counted(partition, topic.min_isr) for partition in topic.partitions]
    return Totals(1, *(sum(column) for column in zip(*columns, strict=True))) if columns else Totals(1)
