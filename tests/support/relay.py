"""A relay between clients and a server on loopback, which may lose answers and cut connections."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PART_BYTES = 65_536


class Relay:
    """A listener in place of a server. Each connection has two threads, which end with it."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        # While it is set, clients hear nothing from the server. What is lost then leaves a hole in each connection.
        self.loses_answers = threading.Event()
        # How often something was passed on to the server, and when that was last.
        self.asked = 0
        self._asked_s = time.monotonic()
        # While it is set, a new connection is closed at once.
        self.is_cut = threading.Event()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_cut.is_set():
                    client.close()
                    continue
                server = socket.create_connection(self._server)
                self._open |= {client, server}
                threading.Thread(target=self._pass, args=(client, server, None), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, self.loses_answers), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, lost: threading.Event | None) -> None:
        with suppress(OSError):
            while part := source.recv(PART_BYTES):
                if lost is None or not lost.is_set():
                    target.sendall(part)
                if lost is None:
                    self.asked, self._asked_s = self.asked + 1, time.monotonic()
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
            self._open.discard(one)

    def loses_open_connections(self) -> None:
        """Pass no answer on over a connection that is open now, and every answer over a later one."""
        self.loses_answers.set()
        self.loses_answers = threading.Event()

    @property
    def silent_s(self) -> float:
        """For how long the relay has passed nothing on to the server."""
        return time.monotonic() - self._asked_s

    def cut(self) -> None:
        """Close all connections, and accept none until ``is_cut`` is cleared."""
        self.is_cut.set()
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._listener.close()


@contextmanager
def relay(server: str) -> Iterator[Relay]:
    """Relay to ``host:port``."""
    host, _, port = server.rpartition(":")
    found = Relay((host, int(port)))
    try:
        yield found
    finally:
        found.close()
