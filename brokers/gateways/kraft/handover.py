"""End cleanly: another gateway leads, and brokers learn which one, before the port is closed."""

import asyncio
import contextlib
import time

import structlog

from brokers.gateways.kraft.engine_client import EngineClient, NoAnswerError
from brokers.gateways.kraft.event_queue import Lane, QueueFullError
from brokers.gateways.kraft.quorum_view import QuorumView
from state.events import GatewayHeartbeat

# Waiting fetches are answered as soon as another gateway leads. The port stays open this long, so that they can be.
TELL_BROKERS_S = 0.25

logger = structlog.get_logger()


async def hand_over(engine: EngineClient, quorum_view: QuorumView, last: GatewayHeartbeat, timeout_ms: int) -> None:
    """Announce the end with the ``last`` heartbeat. If another gateway takes over, give brokers time to learn that.

    Without an engine no gateway takes over, and this one leaves after ``timeout_ms``.
    """
    led, began_s = quorum_view.leads, time.monotonic()
    with contextlib.suppress(NoAnswerError, QueueFullError):
        await engine.ask(last, lane=Lane.GATEWAY, timeout_ms=timeout_ms)
    if led and not quorum_view.leads:
        logger.info("handed over", to=quorum_view.leader, after_ms=int((time.monotonic() - began_s) * 1000))
        await asyncio.sleep(TELL_BROKERS_S)
