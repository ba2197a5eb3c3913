"""The controller's end of a broker in ZooKeeper mode."""

import asyncio
from typing import Any

from brokers.gateways.zk.messages import CATALOGUE
from brokers.wire.catalogue import Request, framed
from brokers.wire.messages import FRAME_LENGTH_BYTES


class Door:
    """The controller's end of a broker: it notes requests, and answers each as ``answers`` says. None closes.

    If ``hold_after`` was called, it answers only so many until an event is set.
    """

    def __init__(self, *answers: dict[str, Any] | None) -> None:
        self.requests: list[Request] = []
        self._answers = list(answers)
        self._answered_max: int | None = None
        self._go_on = asyncio.Event()

    def hold_after(self, count: int, go_on: asyncio.Event) -> None:
        self._answered_max, self._go_on = count, go_on

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(FRAME_LENGTH_BYTES), "big")
                request = CATALOGUE.decode_request(await reader.readexactly(size))
                self.requests.append(request)
                if self._answered_max is not None and len(self.requests) > self._answered_max:
                    await self._go_on.wait()
                answer = self._answers.pop(0) if self._answers else {}
                if answer is None:
                    return
                frame = CATALOGUE.encode_response(request.api_key, request.version, request.correlation_id, answer)
                writer.write(framed(frame))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    @property
    def names(self) -> list[str]:
        return [request.name for request in self.requests]
