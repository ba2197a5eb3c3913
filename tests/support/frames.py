"""A connection that sends bytes and reads Kafka's frames: four bytes of length, then the message."""

import socket
import ssl


class FrameConnection:
    """A connection that does not interpret the messages it carries."""

    def __init__(self, host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def frame(self) -> bytes:
        """Read one frame; raises ``ConnectionError`` at the end of the stream."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def _read(self, size: int) -> bytes:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            count = self._socket.recv_into(left)
            if not count:
                raise ConnectionError("closed")
            left = left[count:]
        return bytes(data)

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for it with others."""
        return self._socket.fileno()

    def wait_at_most(self, timeout_s: float) -> None:
        """Raise ``TimeoutError`` from now on if a response takes longer."""
        self._socket.settimeout(timeout_s)

    def close(self) -> None:
        self._socket.close()
