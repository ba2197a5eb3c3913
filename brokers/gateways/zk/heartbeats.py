"""A gateway's start and its heartbeats. Each heartbeat says how long the process was held up since the last one."""

from collections.abc import Iterable, Sequence

import structlog
from msgspec.structs import replace

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from bus.clock import now_ms
from state.decisions import AnyDecision, Rejected
from state.event_text import decode
from state.events import GatewayHeartbeat, GatewayStarted
from state.reason import Reason

logger = structlog.get_logger()


class Heartbeats:
    """The heartbeats of one incarnation. Time in which the process did not run is reported exactly once.

    While the clock is far ahead the engine refuses the start, and after that the heartbeats of an incarnation that has
    not started. So a refused start is sent again.
    """

    def __init__(self, engine: EngineClient, gateway: int, incarnation: str, voters: Sequence[int]) -> None:
        self._engine = engine
        self._gateway = gateway
        self._incarnation = incarnation
        self._voters = tuple(voters)
        self._was_refused = False
        self._untold_ms = 0
        self._silent_because: str | None = None

    def start(self) -> None:
        """Tell the engine that this incarnation starts."""
        started = GatewayStarted(
            time_ms=now_ms(),
            gateway=self._gateway,
            incarnation=self._incarnation,
            voters=self._voters,
            is_kraft=False,
        )
        self._engine.tell(started, lane=Lane.GATEWAY)

    def hear(self, decisions: Iterable[AnyDecision]) -> None:
        """Note whether the engine refused the start because the clock was ahead."""
        for decision in decisions:
            if isinstance(decision, Rejected) and decision.reason == Reason.TIME_AHEAD:
                event = decode(decision.raw.encode())
                self._was_refused |= isinstance(event, GatewayStarted) and event.incarnation == self._incarnation

    def send(self, late_ms: int, silent_because: str | None = None, hears: tuple[int, ...] = ()) -> None:
        """Send a heartbeat after a wait that was ``late_ms`` too long, unless there is a reason to be silent.

        ``hears`` are the brokers that this gateway reaches. If the queue is full, or no heartbeat may go out, the next
        one reports the lateness.
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
            self._engine.tell(replace(self._next(), hears=hears), lane=Lane.GATEWAY)
            self._untold_ms = 0
        except QueueFullError as error:
            logger.warning("heartbeat skipped", why=str(error))

    def last(self) -> GatewayHeartbeat:
        """Return the heartbeat with which this gateway stops."""
        return replace(self._next(), want_shutdown=True)

    def _next(self) -> GatewayHeartbeat:
        return GatewayHeartbeat(
            time_ms=now_ms(), gateway=self._gateway, incarnation=self._incarnation, late_ms=self._untold_ms
        )
