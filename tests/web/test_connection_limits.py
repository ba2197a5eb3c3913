"""The server closes silent connections, and never one in use."""

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sinks.web.routes import app_of
from tests.sinks.sample import sample
from tests.support.waiting import TIMEOUT_S
from web import connection_limits
from web.server import WebServer

LIMIT = 6
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Door:
    """A server with room for six connections, and a path whose answer waits for ``release``."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self._released = threading.Event()
        self._server = WebServer(app_of(sample(), [Route("/slow", self._slow)]))
        self.port = self._server.serve("127.0.0.1", 0) or 0
        self._open: list[socket.socket] = []

    async def _slow(self, request: Request) -> Response:
        self.began.release()
        while not self._released.is_set():
            await asyncio.sleep(0.01)
        return PlainTextResponse("done")

    def connect(self, said: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)
        self._open.append(made)
        made.sendall(said)
        return made

    def occupied(self) -> socket.socket:
        """Return a connection whose request is being answered."""
        made = self.connect(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert self.began.acquire(timeout=TIMEOUT_S)
        return made

    def release(self) -> None:
        """Let all slow requests finish."""
        self._released.set()

    def close(self) -> None:
        self.release()
        for one in self._open:
            one.close()
        self._server.close()


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    monkeypatch.setattr(connection_limits, "SOCKETS_MAX", LIMIT)
    monkeypatch.setattr(connection_limits, "SILENCE_S", 120.0)
    made = Door()
    yield made
    made.close()


def status(connection: socket.socket) -> int:
    """Return the status of the whole answer that comes next; 0 if the connection ended."""
    answer = http.client.HTTPResponse(connection)
    try:
        answer.begin()
        answer.read()
    except (ConnectionError, http.client.HTTPException):
        return 0
    return answer.status


def test_a_supervisor_takes_the_place_of_the_connection_that_was_silent_longest(door: Door) -> None:
    half = door.connect(b"GET /healthz HTTP/1.1\r\nX-Half")
    silent = [door.connect() for _ in range(LIMIT - 2)]
    assert status(door.connect(HEALTH)) == 200
    assert status(door.connect(HEALTH)) == 200
    assert status(half) == 0
    silent[0].settimeout(0.2)
    with pytest.raises(TimeoutError):
        silent[0].recv(1)


def test_an_answer_counts_as_activity(door: Door) -> None:
    answered = [door.connect() for _ in range(LIMIT)]
    for one in (*answered, answered[0]):
        one.sendall(HEALTH)
        assert status(one) == 200
    assert status(door.connect(HEALTH)) == 200
    assert status(answered[1]) == 0
    answered[0].sendall(HEALTH)
    assert status(answered[0]) == 200


def test_a_connection_in_use_keeps_its_place(door: Door) -> None:
    first = door.occupied()
    for _ in range(3 * LIMIT):
        door.connect()
    others = [door.occupied() for _ in range(LIMIT - 1)]
    assert status(door.connect(HEALTH)) == 0, "all are in use, so the new one is refused"
    door.release()
    assert [status(one) for one in (first, *others)] == [200] * LIMIT


def test_a_connection_that_asks_again_and_again_is_not_silent(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "SILENCE_S", 2.0)
    # CPython may reuse a freed object's id. Here it always does.
    monkeypatch.setattr(connection_limits, "id", lambda one: 1, raising=False)
    asking = [door.connect() for _ in range(LIMIT)]
    ends_s = time.monotonic() + 4.5
    while time.monotonic() < ends_s:
        for one in asking:
            one.sendall(HEALTH)
        assert {status(one) for one in asking} == {200}


def test_a_connection_with_tls_that_has_just_ended_has_no_descriptor() -> None:
    """A new connection may come before the protocol hears of the end. It must not be lost to an error."""
    connection: Any = connection_limits.BoundedProtocol.__new__(connection_limits.BoundedProtocol)
    # A closed TLS transport in asyncio answers like this.
    connection.transport = SimpleNamespace(get_extra_info=lambda name: None)
    assert connection.descriptor == -1
