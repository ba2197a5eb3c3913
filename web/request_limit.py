"""A limit on concurrent requests. Supervisors are always answered."""

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

REQUESTS_MAX = 64
# They are cheap, and a supervisor that gets no answer would restart a process that works.
ALWAYS_ANSWERED = frozenset({"/healthz", "/readyz", "/standbyz"})


class RequestLimit:
    """An application that answers ``REQUESTS_MAX`` requests of ``app`` at a time, and refuses others with 503.

    Uvicorn's own limit would refuse supervisors too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ALWAYS_ANSWERED:
            await self._app(scope, receive, send)
        elif self._open >= REQUESTS_MAX:
            refusal = PlainTextResponse("too many requests are open\n", 503, headers={"Retry-After": "5"})
            await refusal(scope, receive, send)
        else:
            self._open += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._open -= 1
