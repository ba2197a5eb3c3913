"""Refuse requests under a host name if no token is asked for.

A foreign web page may let its own host name point to this machine. The browser would then take what is served here for
a part of that page, and the page's scripts could read it.
"""

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from conf.security.exposure import ONLY_BY_ADDRESS, is_by_address


class OwnHost:
    """An application that answers requests to ``app`` only under an address or as localhost."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_by_address(Headers(scope=scope).get("host")):
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse(ONLY_BY_ADDRESS, 421)(scope, receive, send)
