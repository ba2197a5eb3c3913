"""The HTTP server: an ASGI application on one address, in a thread beside the process's work."""

import asyncio
import logging
import socket
import threading
from collections.abc import Collection
from typing import cast

import structlog
import uvicorn
from starlette.types import ASGIApp

from conf.security.exposure import Protection
from web.connection_limits import BoundedListener, BoundedProtocol, HandshakeLoop
from web.guard import Guard, OwnHost
from web.request_limit import RequestLimit

REQUEST_HEAD_BYTES_MAX = 16 * 1024
KEEP_ALIVE_S = 5
# How long open requests may still run after the server is closed.
GRACE_S = 1
_BACKLOG = 128
_OPEN = Protection()

logger = structlog.get_logger("isrflow.web")


class MetricsError(OSError):
    """The address for metrics cannot be opened. The message says what to set, and ``why`` only what is wrong."""

    def __init__(self, address: str, why: str) -> None:
        self.why = why
        advice = "choose another port with --set metrics.port=PORT (0 for any free port, -1 for none)."
        super().__init__(f"cannot serve metrics on {address}: {why}; {advice}")


class WebServer:
    """The server of one application, on one address or on none."""

    def __init__(self, app: ASGIApp, protection: Protection = _OPEN) -> None:
        self.scheme = protection.scheme
        is_https = protection.tls is not None
        self._config = uvicorn.Config(
            RequestLimit(Guard(app, protection.token, is_https=is_https) if protection.token else OwnHost(app)),
            loop="asyncio",
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
            h11_max_incomplete_event_size=REQUEST_HEAD_BYTES_MAX,
        )
        self._config.load()
        # A context of uvicorn's own would keep the certificate of the start.
        self._config.ssl = protection.tls
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def serve(self, host: str, port: int) -> int | None:
        """Serve from now on, and return the port. Port 0 takes any free port, and -1 serves nothing.

        Raises ``MetricsError``.
        """
        if port < 0:
            return None
        server = uvicorn.Server(self._config)
        # Its protocols are all of this class, as the configuration says.
        connections = cast("set[BoundedProtocol]", server.server_state.connections)
        listening = _listen(host, port, connections)
        log_to_own()
        self._server = server
        self._thread = threading.Thread(target=_run, args=(server, listening), name="isrflow-web", daemon=True)
        self._thread.start()
        return int(listening.getsockname()[1])

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(GRACE_S + 5)
            self._server = self._thread = None


def _run(server: uvicorn.Server, listening: socket.socket) -> None:
    with asyncio.Runner(loop_factory=HandshakeLoop) as runner:
        runner.run(server.serve(sockets=[listening]))


def _listen(host: str, port: int, connections: Collection[BoundedProtocol]) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return BoundedListener(socket.create_server(address, family=family, backlog=_BACKLOG), connections)
    except OSError as error:
        # Python adds the address once more.
        raise MetricsError(f"{host}:{port}", str(error.strerror).partition(" (while")[0]) from error


class ToOwnLog(logging.Handler):
    """A handler that writes the server's records to the process's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        facts = {"error": repr(error)} if error else {}
        write = logger.error if record.levelno >= logging.ERROR else logger.warning
        # A traceback has line breaks, and the first line of the message says what it is.
        write(record.getMessage().split("\n")[0], **facts)


def log_to_own() -> None:
    """Send the warnings and errors of uvicorn to the process's log, because in JSON mode every line must be JSON."""
    server = logging.getLogger("uvicorn")
    server.setLevel(logging.WARNING)
    server.propagate = False
    server.handlers = [ToOwnLog()]
