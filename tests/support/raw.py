"""A client that speaks one message at a time, with no opinion of its own."""

import json
import socket
from pathlib import Path
from typing import Any

from kafka.protocol.api_header import ResponseClassRegistry

from brokers.wire.messages import encode_request

TIMEOUT_S = 15


class RawClient:
    """Hold one connection to a broker."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self._correlation_id = 0

    @classmethod
    def to(cls, folder: Path) -> "RawClient":
        """Connect to the broker that lives in ``folder``."""
        told = json.loads((folder / "broker.json").read_text())
        return cls(told["host"], told["port"])

    def ask(self, body: Any) -> Any:
        """Send a request, and return its response in the request's version."""
        self.send(body)
        return self.receive(body)

    def send(self, body: Any) -> None:
        self._correlation_id += 1
        self.send_bytes(encode_request(body, self._correlation_id, "raw"))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self, body: Any) -> Any:
        frame = self.frame()
        shape = ResponseClassRegistry._response_class_registry[body.API_KEY]
        return shape.decode(frame, version=body.API_VERSION, header=True)

    def frame(self) -> bytes:
        """Read one frame; raises ``ConnectionError`` at the end of the stream."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def close(self) -> None:
        self._socket.close()
