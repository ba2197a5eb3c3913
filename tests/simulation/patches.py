"""What the real code finds in place of the machine: the clock, identities, connections, forcing to disk."""

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import structlog

from isrflow.brokers.mock import files
from isrflow.brokers.mock.log.segment import Segment
from isrflow.brokers.mock.replicas import fetcher
from isrflow.bus import embedded
from tests.simulation.disk import Disk
from tests.simulation.network import Network, connections_over
from tests.simulation.virtual_loop import START_MS, VirtualLoop


@contextmanager
def in_place_of_the_machine(loop: VirtualLoop, network: Network, disk: Disk) -> Iterator[None]:
    """Let the real code run on ``loop``'s clock, ``network`` and ``disk``."""
    numbers = iter(range(2**62))

    def time_ns() -> int:
        return (START_MS + int(loop.now * 1000)) * 1_000_000

    clock = SimpleNamespace(time_ns=time_ns, time=time.time, monotonic=time.monotonic, sleep=time.sleep)
    configured = structlog.get_config()
    with ExitStack() as stack:
        for target, name, stand_in in (
            (embedded, "time", clock),
            (uuid, "uuid4", lambda: SimpleNamespace(hex=f"{next(numbers):032x}")),
            (fetcher, "Connection", connections_over(network)),
            (Segment, "flush", lambda segment: disk.forced(segment)),
            (files, "flush_directory", _nothing),
        ):
            stack.enter_context(patch.object(target, name, stand_in))
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        try:
            yield
        finally:
            structlog.configure(**configured)


def _nothing(path: Any) -> None:
    """Leave a directory of the memory unforced."""
