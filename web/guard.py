"""The doors of the server: one asks for the token before anything is served, the other one for an address.

Programs send ``Authorization: Bearer TOKEN`` with each request. A browser cannot, so a person types the token once into
a form, and the browser gets a cookie instead: the time at which it ends, signed with the token. Nothing is remembered
here. The token is never in an address, because addresses are logged and shown.
"""

import asyncio
import hmac
import time
from functools import partial
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from conf.security.exposure import ONLY_BY_ADDRESS, is_by_address
from conf.security.token import CHALLENGE, HOW_TO_CALL, Token

LOGIN = "/login"
SESSION_S = 12 * 3600
# The key of a function in a request's scope. It says whether the caller is still allowed, and long answers ask it.
IS_STILL_ALLOWED = "isrflow.may"
BODY_BYTES_MAX = 8_192
BODY_TIMEOUT_S = 5.0
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>isrflow</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{{font:16px system-ui,sans-serif;margin:15vh auto;max-width:22rem;padding:0 1rem}}
input,button{{font:inherit;box-sizing:border-box;width:100%;padding:.5rem;margin-top:.75rem}}</style></head>
<body><h1>isrflow</h1><p role="alert">{said}</p>
<form method="post" action="/login"><label>Token <input name="token" type="password" autocomplete="current-password"
required autofocus></label><button>Sign in</button></form></body></html>
"""


class Guard:
    """An application that serves ``app`` only to callers who know the token."""

    def __init__(self, app: ASGIApp, token: Token, *, is_https: bool) -> None:
        self._app = app
        self._token = token
        # A browser takes a cookie of this name only over TLS, and from this host.
        self._cookie = "__Host-isrflow" if is_https else "isrflow"
        self._is_https = is_https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == LOGIN and scope["method"] == "POST":
            await (await self._signed_in(Request(scope, receive)))(scope, receive, send)
        elif self._may(headers := Headers(scope=scope)):
            await self._app({**scope, IS_STILL_ALLOWED: partial(self._may, headers)}, receive, send)
        else:
            await _refusal(headers)(scope, receive, send)

    def _may(self, headers: Headers) -> bool:
        if self._token.is_in(headers.get("authorization", "")):
            return True
        end, _, signature = cookie_parser(headers.get("cookie", "")).get(self._cookie, "").partition(".")
        is_ours = hmac.compare_digest(self._token.signature(end).encode(), signature.encode())
        return is_ours and int(end) > time.time()

    async def _signed_in(self, request: Request) -> Response:
        text = await _typed(request)
        if text is None or not self._token.is_text(text):
            return _form(403, "That is not the token.")
        end = str(int(time.time()) + SESSION_S)
        answer = RedirectResponse("/", 303, headers={"Cache-Control": "no-store"})
        answer.set_cookie(
            self._cookie,
            f"{end}.{self._token.signature(end)}",
            max_age=SESSION_S,
            secure=self._is_https,
            httponly=True,
            samesite="strict",
        )
        return answer


async def _typed(request: Request) -> str | None:
    """Read the token from the form; None if the form is too long, too slow, cut off, or not one."""
    body = b""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                body += part
                if len(body) > BODY_BYTES_MAX:
                    return None
        return parse_qs(body.decode("ascii"), max_num_fields=4)["token"][0].strip()
    except (ClientDisconnect, TimeoutError, ValueError, KeyError):
        return None


def _refusal(headers: Headers) -> Response:
    if "text/html" in headers.get("accept", ""):
        return _form(401, "This page needs the token.")
    asked = {"WWW-Authenticate": CHALLENGE, "Cache-Control": "no-store"}
    return PlainTextResponse(HOW_TO_CALL, 401, headers=asked)


def _form(status: int, said: str) -> Response:
    return HTMLResponse(_FORM.format(said=said), status, headers=_HEADERS)


class OwnHost:
    """An application that answers requests to ``app`` only under an address or as localhost. It asks for no token.

    A foreign web page may let its own host name point to this machine. The browser would then take what is served here
    for a part of that page, and the page's scripts could read it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_by_address(Headers(scope=scope).get("host")):
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse(ONLY_BY_ADDRESS, 421)(scope, receive, send)
