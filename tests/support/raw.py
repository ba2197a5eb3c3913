"""A client that sends exactly the message it is given, one at a time, with kafka-python's codec."""

import json
from pathlib import Path
from typing import Any

from tests.support.frames import FrameConnection
from tests.support.waiting import TIMEOUT_S


class RawClient(FrameConnection):
    """One connection to a broker."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, TIMEOUT_S)
        self._correlation_id = 0

    @classmethod
    def to(cls, folder: Path) -> "RawClient":
        """Connect to the broker that lives in ``folder``."""
        address = json.loads((folder / "broker.json").read_text())
        return cls(address["host"], address["port"])

    def ask(self, body: Any) -> Any:
        """Send a request, and return its response in the request's version."""
        self.send(body)
        return self.receive(body)

    def send(self, body: Any) -> None:
        self._correlation_id += 1
        body.with_header(correlation_id=self._correlation_id, client_id="raw")
        self.send_bytes(bytes(body.encode(header=True, framed=True)))

    def receive(self, body: Any) -> Any:
        frame = self.frame()
        return body.header.get_response_class().decode(frame, header=True)
