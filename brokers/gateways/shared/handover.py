"""End cleanly: another gateway leads, and brokers learn which one, before the port is closed."""

import asyncio
import contextlib
import time
from typing import Protocol

import structlog

from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from state.events import GatewayHeartbeat

# Waiting fetches are answered as soon as another gateway leads. The port stays open this long, so that they can be.
TELL_BROKERS_S = 0.25

logger = structlog.get_logger()


class Led(Protocol):
    """What a gateway knows of who leads."""

    @property
    def leads(self) -> bool: ...
    @property
    def leader(self) -> int: ...


async def hand_over(engine: EngineClient, known: Led, last: GatewayHeartbeat, timeout_ms: int) -> None:
    """Announce the end with the ``last`` heartbeat. If another gateway takes over, give brokers time to learn that.

    Without an engine no gateway takes over, and this one leaves after ``timeout_ms``.
    """
    led, began_s = known.leads, time.monotonic()
    with contextlib.suppress(NoAnswerError, QueueFullError):
        await engine.ask(last, lane=Lane.GATEWAY, timeout_ms=timeout_ms)
    if led and not known.leads:
        logger.info("handed over", to=known.leader, after_ms=int((time.monotonic() - began_s) * 1000))
        await asyncio.sleep(TELL_BROKERS_S)
