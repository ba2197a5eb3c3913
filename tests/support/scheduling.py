"""The needs of tests, and the order in which workers run them so that all have work until the end.

xdist would start with the files that have the most tests, and give a worker more files before it has finished the
former ones. The longest tests stand alone in their files. They would come last, several of them would wait for one
worker, and the other workers would be idle. Here tests that share a server or a session come first, then files that
start servers of their own, and the many quick tests fill the end.
"""

from collections import Counter
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling

# Each mark names what a test starts (pyproject.toml explains them).
SLOW = ("spark", "kafka_bus", "mock_brokers", "kraft", "zookeeper", "browser")
STARTS_SERVERS = "starts servers"


class ByGroup(LoadGroupScheduling):
    """A scheduler that gives each group of tests, or else each file, to one worker in the order of ``put_in_order``."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return _file_of(super()._split_scope(nodeid))


def group(items: list[pytest.Item]) -> None:
    """Note what a test starts, and let one worker run all that use the shared Kafka node: each would start its own."""
    for item in items:
        if _is_slow(item):
            item.user_properties.append((STARTS_SERVERS, True))
        if item.get_closest_marker("kafka_bus"):
            item.add_marker(pytest.mark.xdist_group("kafka_bus"))


def put_in_order(items: list[pytest.Item]) -> None:
    """Sort tests: groups, other slow files from the fewest tests to the most, and then the quick ones."""
    file_of = {item: _file_of(item.nodeid) for item in items}
    slow = {file for item, file in file_of.items() if _is_slow(item)}
    counts = Counter(file_of.values())

    def place(item: pytest.Item) -> tuple[int, int | str]:
        shared = item.get_closest_marker("xdist_group")
        if shared:
            return (0, str(shared.args[0]))
        file = file_of[item]
        return (1, counts[file]) if file in slow else (2, 0)

    items.sort(key=place)


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in SLOW)


def _file_of(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]
