"""The paths that every process serves: metrics and health. Any other path is answered with 404."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

_NOT_STORED = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Health(Protocol):
    """An answer to a supervisor: whether all is well, and the measured values as JSON."""

    @property
    def ok(self) -> bool: ...
    @property
    def body(self) -> bytes: ...


def app_of(
    registry: CollectorRegistry, health: Mapping[str, Callable[[], Health]], more: Sequence[BaseRoute] = ()
) -> Starlette:
    """Make the application that serves metrics, what is asked at the paths of ``health``, and the routes in ``more``.

    What ``health`` asks must return at once.
    """
    own = [Route("/metrics", _scraped(registry)), *(Route(path, _answered(judge)) for path, judge in health.items())]
    routes = [*more, *own]
    app = Starlette(routes=routes, exception_handlers={404: _not_found(routes)})
    # Otherwise a path that ends in a slash would be redirected instead of refused.
    app.router.redirect_slashes = False
    return app


# Starlette runs plain functions in threads that they share. Questions about the past may occupy these for long, and a
# supervisor must get its answer meanwhile. So no handler here is a plain function.
def _scraped(registry: CollectorRegistry) -> Callable[[Request], Awaitable[Response]]:
    async def scrape(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        # In a thread, because it renders all series and measures processes and files. Nothing else uses these threads.
        body = await asyncio.to_thread(encode, registry)
        return Response(body, headers=_NOT_STORED | {"Content-Type": content_type})

    return scrape


def _answered(judge: Callable[[], Health]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        health = judge()
        return Response(health.body, 200 if health.ok else 503, headers=_NOT_STORED, media_type="application/json")

    return answer


def _not_found(routes: Sequence[BaseRoute]) -> Callable[[Request, Exception], Response]:
    served = ", ".join(route.path for route in routes if isinstance(route, Route) and "{" not in route.path)

    def refuse(request: Request, error: Exception) -> Response:
        detail = error.detail if isinstance(error, HTTPException) and error.detail != "Not Found" else ""
        text = detail or f"There is nothing here. Served are: {served}"
        return PlainTextResponse(text + "\n", 404, headers=_NOT_STORED)

    return refuse
