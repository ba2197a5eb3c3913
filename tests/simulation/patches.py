"""Replacements for the machine: clock, identities, connections, and the disk's behaviour."""

import logging
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import structlog

from brokers.mock.log.segment import Segment
from brokers.mock.replicas import fetcher
from brokers.mock.replicas.partition import Partition
from brokers.mock.replicas.table import Replicas
from bus import clock as bus_clock
from conf import whole_file
from isrflow import clock as wall_clock
from tests.simulation.brokers_seen import BrokersSeen
from tests.simulation.disk import Disk
from tests.simulation.network import ASKED, Network, connections_over
from tests.simulation.virtual_loop import PROCESS, VirtualLoop
from tests.simulation.wall_clocks import WallClocks


@contextmanager
def in_place_of_the_machine(
    loop: VirtualLoop, clocks: WallClocks, network: Network, disk: Disk, seen: BrokersSeen
) -> Iterator[None]:
    """Run the real code on ``loop``'s time, the hosts' ``clocks``, ``network`` and ``disk``.

    ``seen`` notes which fetches count as a follower's progress.
    """
    numbers = iter(range(2**62))

    def time_ns() -> int:
        return clocks.now_ms(PROCESS.get().name) * 1_000_000

    def append(segment: Segment, data: Any) -> None:
        disk.check_room(segment)
        store(segment, data)

    def fetched(replicas: Replicas, partition: Partition, replica: int, offset: int, replica_epoch: int) -> None:
        seen.counted(partition, replica, _fetched_partition(partition))
        count(replicas, partition, replica, offset, replica_epoch)

    store, count = Segment.append, Replicas.fetched
    clock = SimpleNamespace(time_ns=time_ns, clock_gettime_ns=lambda which: int(loop.now * 1_000_000_000))
    configured = structlog.get_config()
    with ExitStack() as stack:
        for target, name, stand_in in (
            (bus_clock, "time", clock),
            (wall_clock, "time", clock),
            (uuid, "uuid4", lambda: SimpleNamespace(hex=f"{next(numbers):032x}")),
            (fetcher, "Connection", connections_over(network)),
            (Segment, "flush", lambda segment: disk.forced(segment)),
            (Segment, "append", append),
            (Replicas, "fetched", fetched),
            (whole_file, "flush_directory", _nothing),
        ):
            stack.enter_context(patch.object(target, name, stand_in))
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        try:
            yield
        finally:
            structlog.configure(**configured)


def _fetched_partition(partition: Partition) -> Any:
    """Return the partition of the current request."""
    topic_id, number = partition.topic_id, partition.place.partition
    wanted = [one for topic in ASKED.get()["Topics"] if topic["TopicId"] == topic_id for one in topic["Partitions"]]
    return next(one for one in wanted if one["Partition"] == number)


def _nothing(path: Any) -> None:
    """Do nothing, because a directory in memory need not be forced to disk."""
