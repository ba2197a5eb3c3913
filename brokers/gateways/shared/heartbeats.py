"""A gateway's start, heartbeats and end. Each heartbeat tells how long the process was held up since the last one."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import structlog

from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from bus.clock import now_ms
from state.decisions import AnyDecision, Rejected
from state.event_text import decode
from state.events import GatewayHeartbeat, GatewayStarted
from state.level import NEWEST_LEVEL
from state.reason import Reason
from state.shadow import ShadowError
from state.stored.codec import LevelError

# Waiting fetches are answered as soon as another gateway leads. The port stays open this long, so that they can be.
TELL_BROKERS_S = 0.25

logger = structlog.get_logger()


class Led(Protocol):
    """A gateway's knowledge of who leads."""

    @property
    def leads(self) -> bool: ...
    @property
    def leader(self) -> int: ...


class Heartbeats:
    """The heartbeats of one incarnation. Time that the process did not run is reported once, and never forgotten.

    While the clock is far ahead the engine refuses the start, and later the heartbeats of a run that has not started.
    So a refused start is published again.
    """

    def __init__(
        self, engine: EngineClient, gateway: int, incarnation: str, voters: Sequence[int], *, is_kraft: bool
    ) -> None:
        self._engine = engine
        self._gateway = gateway
        self._incarnation = incarnation
        self._voters = tuple(voters)
        self._is_kraft = is_kraft
        self._was_refused = False
        self._untold_ms = 0
        self._silent_because: str | None = None

    def start(self) -> None:
        """Publish that this incarnation starts."""
        started = GatewayStarted(
            time_ms=now_ms(),
            gateway=self._gateway,
            incarnation=self._incarnation,
            voters=self._voters,
            is_kraft=self._is_kraft,
            level=NEWEST_LEVEL,
        )
        self._engine.tell(started, lane=Lane.GATEWAY)

    def hear(self, decisions: Iterable[AnyDecision]) -> None:
        """Notice that the engine has refused the start, because the clock was ahead.

        Raises ``LevelError``, and ``ShadowError`` if nothing is led on the bus.
        """
        for decision in decisions:
            if not isinstance(decision, Rejected):
                continue
            if decision.field != "level" and decision.reason not in (Reason.TIME_AHEAD, Reason.SHADOW_REFUSED):
                continue
            event = decode(decision.raw.encode())
            if not isinstance(event, GatewayStarted | GatewayHeartbeat) or event.incarnation != self._incarnation:
                continue
            if decision.field == "level":
                raise LevelError(decision.message)
            if decision.reason is Reason.SHADOW_REFUSED:
                raise ShadowError(decision.message)
            self._was_refused |= isinstance(event, GatewayStarted)

    def send(
        self,
        late_ms: int,
        silent_because: str | None = None,
        hears: tuple[int, ...] = (),
        ask: Callable[[GatewayHeartbeat], object] | None = None,
    ) -> None:
        """Send a heartbeat after a wait that was ``late_ms`` too long, unless there is a reason to be silent.

        ``hears`` are the brokers that this gateway reaches. ``ask`` sends the heartbeat in its own way. It may lose it,
        so it gets none that tells a lateness. If the queue is full, or no heartbeat may go out, the next one tells the
        lateness.
        """
        self._untold_ms += late_ms
        if silent_because != self._silent_because:
            if silent_because is None:
                logger.info("heartbeats go on")
            else:
                logger.warning("no heartbeats, so that another gateway leads", why=silent_because)
            self._silent_because = silent_because
        if silent_because is not None:
            return
        try:
            if self._was_refused:
                logger.warning("the start was refused", hint="is the clock wrong?")
                self.start()
                self._was_refused = False
            heartbeat = self._next(hears)
            if ask is not None and not self._untold_ms:
                ask(heartbeat)
            else:
                self._engine.tell(heartbeat, lane=Lane.GATEWAY)
            self._untold_ms = 0
        except QueueFullError as error:
            logger.warning("heartbeat skipped", why=str(error))

    async def hand_over(self, known: Led, timeout_ms: int, hears: tuple[int, ...] = ()) -> None:
        """Announce the end with the last heartbeat. If another gateway takes over, give brokers time to learn that.

        Without an engine no gateway takes over, and this one leaves after ``timeout_ms``.
        """
        led, began_s = known.leads, time.monotonic()
        with contextlib.suppress(NoAnswerError, QueueFullError):
            await self._engine.ask(self._next(hears, want_shutdown=True), lane=Lane.GATEWAY, timeout_ms=timeout_ms)
        if led and not known.leads:
            logger.info("handed over", to=known.leader, after_ms=int((time.monotonic() - began_s) * 1000))
            await asyncio.sleep(TELL_BROKERS_S)

    def _next(self, hears: tuple[int, ...], *, want_shutdown: bool = False) -> GatewayHeartbeat:
        return GatewayHeartbeat(
            time_ms=now_ms(),
            gateway=self._gateway,
            incarnation=self._incarnation,
            late_ms=self._untold_ms,
            want_shutdown=want_shutdown,
            hears=hears,
            level=NEWEST_LEVEL,
        )
