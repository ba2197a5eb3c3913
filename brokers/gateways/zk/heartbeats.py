"""A gateway's heartbeats. Each says how long the process was held up since the last one that went out."""

import structlog
from msgspec.structs import replace

from brokers.engine.engine_client import EngineClient
from brokers.engine.event_queue import Lane, QueueFullError
from bus.clock import now_ms
from state.events import GatewayHeartbeat

logger = structlog.get_logger()


class Heartbeats:
    """The heartbeats of one incarnation. Time that the process did not run is reported once, and never forgotten."""

    def __init__(self, engine: EngineClient, gateway: int, incarnation: str) -> None:
        self._engine = engine
        self._gateway = gateway
        self._incarnation = incarnation
        self._untold_ms = 0
        self._silent_because: str | None = None

    def send(self, late_ms: int, silent_because: str | None = None) -> None:
        """Send a heartbeat after a wait that was ``late_ms`` too long, unless there is a reason to be silent.

        If the queue is full, or no heartbeat may go out, the next one tells the lateness.
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
            self._engine.tell(self._next(), lane=Lane.GATEWAY)
            self._untold_ms = 0
        except QueueFullError as error:
            logger.warning("heartbeat skipped", why=str(error))

    def last(self) -> GatewayHeartbeat:
        """Return the heartbeat that says that this gateway stops."""
        return replace(self._next(), want_shutdown=True)

    def _next(self) -> GatewayHeartbeat:
        return GatewayHeartbeat(
            time_ms=now_ms(), gateway=self._gateway, incarnation=self._incarnation, late_ms=self._untold_ms
        )
