"""The HTTP server of a broker's or gateway's own metrics: a few scrapers at a time, none of them slow."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from conf.security.exposure import ONLY_BY_ADDRESS, Protection, is_by_address
from conf.security.token import CHALLENGE, HOW_TO_CALL, Token

CONNECTIONS_MAX = 16
# The connection of a scraper that sends or takes nothing for this long is closed, even during its TLS handshake.
SILENCE_S_MAX = 5.0
# A whole request may take no longer than this, however small the pieces in which the scraper sends it.
CONNECTION_S_MAX = 30.0

App = Callable[[dict[str, Any], Any], Iterable[bytes]]


class MetricsServer:
    """The server of one registry, on one address."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int, protection: Protection) -> None:
        app = make_wsgi_app(registry)
        self._server = _Server(host, port, protection)
        self._server.set_app(_guarded(app, protection.token))
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def start(self) -> int:
        """Serve from now on, and return the port."""
        self._thread.start()
        return int(self._server.server_port)

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _guarded(app: App, token: Token | None) -> App:
    def ask(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if token is None:
            if is_by_address(environ.get("HTTP_HOST")):
                return app(environ, start_response)
            start_response("421 Misdirected Request", [("Content-Type", "text/plain")])
            return [ONLY_BY_ADDRESS.encode()]
        if token.is_in(environ.get("HTTP_AUTHORIZATION", "")):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", CHALLENGE)])
        return [HOW_TO_CALL.encode()]

    return ask


def _cut(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Not through TLS, because the other thread is using it.
        socket.socket.shutdown(request, socket.SHUT_RDWR)


class _Quiet(WSGIRequestHandler):
    timeout = SILENCE_S_MAX

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, protection: Protection) -> None:
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._tls = protection.tls
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        super().__init__((host, port), _Quiet)

    def server_bind(self) -> None:
        # Not WSGIServer's, because that asks the name service for this host's name.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            request.settimeout(SILENCE_S_MAX)
            if self._tls:
                # Fails if the client has already left.
                request = self._tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
            self._serve(request, client_address)
        except OSError:
            # The scraper did not speak TLS, was too slow, or has gone.
            self.shutdown_request(request)
        finally:
            self._places.release()

    def _serve(self, request: Any, client_address: Any) -> None:
        end = threading.Timer(CONNECTION_S_MAX, _cut, (request,))
        end.daemon = True
        end.start()
        try:
            if self._tls:
                # Here and not where connections are accepted, so that a silent client holds up only its own thread.
                request.do_handshake()
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: a scraper that has gone is not an error of this process."""
