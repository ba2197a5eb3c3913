"""Heartbeats while ZooKeeper is read, which may take longer than the brokers' sessions with the engine.

Only a term that has begun registers and fences brokers. Until then a broker is reported as alive if ZooKeeper shows it
in the incarnation that the engine knows.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from brokers.gateways.zk.client.call import in_own_thread
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror.stored import stored_brokers
from brokers.gateways.zk.term.presence import heartbeats
from bus.clock import now_ms
from state.events import BrokerHeartbeat


async def beat(
    session: Session, view: ClusterView, tell: Callable[[Sequence[BrokerHeartbeat]], None], interval_ms: int
) -> NoReturn:
    """Tell which brokers are alive, at once and then at each interval, until cancelled. Raises ``ZookeeperError``."""
    while True:
        # The session's own thread is busy until everything is read.
        present = await in_own_thread(stored_brokers, session)
        tell(list(heartbeats(present, view, now_ms())))
        await asyncio.sleep(interval_ms / 1000)


class DueBeats:
    """Heartbeats for a caller that blocks: between its own reads it asks which are due."""

    def __init__(self, session: Session, view: ClusterView, interval_ms: int) -> None:
        self._session = session
        self._view = view
        self._interval_s = interval_ms / 1000
        self._due_s = 0.0

    def due(self) -> list[BrokerHeartbeat]:
        """Return the heartbeats that are due now. Raises ``ZookeeperError``."""
        if time.monotonic() < self._due_s:
            return []
        self._due_s = time.monotonic() + self._interval_s
        return list(heartbeats(stored_brokers(self._session), self._view, now_ms()))
