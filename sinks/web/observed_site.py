"""The page of a shadow's bus, served without an engine."""

from importlib.metadata import version

from msgspec.structs import replace
from starlette.applications import Starlette

from bus.interface import Bus
from bus.waiting import waiting_ms
from sinks.metric_snapshot import MetricSnapshot
from sinks.web.inbox import Inbox
from sinks.web.live import Live
from sinks.web.page_routes import page_routes
from sinks.web.past import PastAnswers
from sinks.web.push import Push
from web.server import WebServer

HOST = "127.0.0.1"


class _Observer(Live):
    """The thread of a page whose process decides nothing: it reads the state and the decisions from the bus."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus, Inbox(), lambda: True, lambda summary: None, lambda: None)

    def look(self) -> None:
        """Take in what is new on the bus. Raises ``BusError`` or ``CodecError``."""
        # First, because the decisions say since when a broker is away, which would have to be searched for otherwise.
        self._recall(self._bus.decided_seq())
        self._look_at_the_bus()
        self.picture = replace(self.picture, waiting_ms=waiting_ms(self._bus))

    def _rest(self, began_s: float) -> bool:
        """Return whether the thread stops. It need not rest, because no engine shares its process."""
        return self._stopping.is_set()


class ObservedSite:
    """The page on loopback, and nothing else: it measures nothing."""

    def __init__(self, bus: Bus, past: PastAnswers) -> None:
        snapshot = MetricSnapshot(version=version("isrflow"), observing=True)
        self._live = _Observer(bus)
        self._push = Push(lambda: snapshot, self._live, has_past=True)
        self._server = WebServer(Starlette(routes=page_routes(self._push, self._live, past)))
        self._past = past

    def serve(self, port: int) -> int:
        """Serve from now on, and return the port. Port 0 takes any free port. Raises ``MetricsError``.

        Raises ``BusError`` or ``CodecError`` if the bus cannot be read.
        """
        found = self._server.serve(HOST, port)
        assert found is not None, "only a negative port serves nothing"
        # So that no page shows an empty cluster first.
        self._live.watched()
        self._live.look()
        self._live.start()
        return found

    def close(self) -> None:
        """Stop serving."""
        self._push.close()
        self._server.close()
        if self._live.is_alive():
            self._live.stop()
            self._live.join(10)
        self._past.close()
