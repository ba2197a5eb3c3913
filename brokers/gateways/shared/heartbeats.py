"""A gateway's start and its heartbeats. Each heartbeat tells how long the process was held up since the last one."""

from collections.abc import Callable, Iterable, Sequence

import structlog

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from bus.clock import now_ms
from state.decisions import AnyDecision, Rejected
from state.event_text import decode
from state.events import GatewayHeartbeat, GatewayStarted
from state.level import NEWEST_LEVEL
from state.reason import Reason
from state.stored.codec import LevelError

logger = structlog.get_logger()


class Heartbeats:
    """The heartbeats of one incarnation. Time that the process did not run is reported once, and never forgotten.

    While the clock is far ahead the engine refuses the start, and later the heartbeats of a run that has not started.
    So a refused start is told again.
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
        """Notice that the engine has refused the start, because the clock was ahead. Raises ``LevelError``."""
        for decision in decisions:
            if not isinstance(decision, Rejected):
                continue
            event = decode(decision.raw.encode())
            if not isinstance(event, GatewayStarted | GatewayHeartbeat) or event.incarnation != self._incarnation:
                continue
            if decision.field == "level":
                raise LevelError(decision.message)
            self._was_refused |= decision.reason == Reason.TIME_AHEAD and isinstance(event, GatewayStarted)

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

    def last(self, hears: tuple[int, ...] = ()) -> GatewayHeartbeat:
        """Return the heartbeat with which this gateway stops."""
        return self._next(hears, want_shutdown=True)

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
