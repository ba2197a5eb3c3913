"""The order in which the workers run the test files, so that all have work until the end.

xdist would start with the files that have the most tests, and hand out further files before a worker has done the ones
that it has. The longest tests stand alone in their files. So they would come last, several of them would wait on one
worker, and the others would have nothing to do. Here the files that start Spark or brokers come first, and the many
quick ones fill the end.
"""

from collections import Counter
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

# Its many stories take minutes, on one worker.
FIRST = "tests/scenarios/test_stories_on_spark.py"
# They use one Spark session in the process of their worker. The last of them ends it.
IN_ONE_SESSION = ("tests/streaming/test_hadoop_path.py", "tests/streaming/test_damaged_checkpoint.py", FIRST)
# They share one Kafka node, which lives as long as its worker. Otherwise each worker would start one.
ON_ONE_NODE = frozenset(
    {
        "tests/bus/test_any_bus.py",
        "tests/bus/test_repeated_batches.py",
        "tests/bus/test_past.py",
        "tests/bus/test_replaced_image.py",
        "tests/bus/kafka/test_bus.py",
        "tests/bus/kafka/test_batches.py",
        "tests/bus/kafka/test_decision_blocks.py",
        "tests/bus/kafka/test_former_claims.py",
        "tests/bus/kafka/test_interrupted.py",
        "tests/bus/kafka/test_lost_ends.py",
        "tests/bus/kafka/test_snapshots.py",
        "tests/bus/kafka/test_topics.py",
        "tests/bus/kafka/test_undecidable.py",
        "tests/bus/test_signs_of_life.py",
        "tests/cli/test_blocked_bus.py",
        "tests/isrflow/test_client.py",
        "tests/isrflow/test_compressed_topics.py",
        "tests/isrflow/test_producers_guide.py",
        "tests/real_kafka/test_bus_on_kafka.py",
        "tests/streaming/test_blocked_on_kafka.py",
        "tests/streaming/test_followed_pages.py",
        "tests/streaming/test_kafka_source.py",
        "tests/streaming/test_on_kafka.py",
        "tests/streaming/test_on_spark_cluster.py",
        "tests/streaming/test_reshard.py",
    }
)
SLOW = ("spark", "cluster")


class ByFile(LoadFileScheduling):
    """A scheduler that gives each file to one worker, in the order of ``put_in_order``.

    Files on one Kafka node go to the same worker, and so do files in one Spark session.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.split("::", 1)[0])


def scope_of(file: str) -> str:
    """Name what one worker runs as a whole."""
    if file in ON_ONE_NODE:
        return "on one node"
    return "in one session" if file in IN_ONE_SESSION else file


def is_on_one_node(item: pytest.Item) -> bool:
    """Say whether a test is in one of the files that share a Kafka node."""
    return _file_of(item) in ON_ONE_NODE


def put_in_order(items: list[pytest.Item]) -> None:
    """Sort tests: the longest files, other slow ones from the fewest tests to the most, and then the quick ones."""
    file_of = {item: _file_of(item) for item in items}
    slow = {file for item, file in file_of.items() if _is_slow(item)}
    counts = Counter(file_of.values())

    def place(item: pytest.Item) -> tuple[int, int]:
        file = file_of[item]
        if file in IN_ONE_SESSION:
            return (0, IN_ONE_SESSION.index(file))
        if file in ON_ONE_NODE:
            return (0, len(IN_ONE_SESSION))
        return (1, counts[file]) if file in slow else (2, 0)

    items.sort(key=place)


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.split("::", 1)[0]


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in SLOW)
