"""The paths that are served. Any other path is answered with 404."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bus.clock import steady_ms
from sinks.metric_snapshot import MetricSnapshot
from sinks.metrics import Metrics
from sinks.web.health import Health, availability, liveness, readiness

_NOT_STORED = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def app_of(metrics: Metrics, more: Sequence[BaseRoute] = ()) -> Starlette:
    """Make the application that serves metrics and health, and the routes in ``more``."""
    own = [
        Route("/metrics", _scraped(metrics)),
        Route("/healthz", _answered(metrics, liveness)),
        Route("/readyz", _answered(metrics, readiness)),
        Route("/standbyz", _answered(metrics, availability)),
    ]
    routes = [*more, *own]
    app = Starlette(routes=routes, exception_handlers={404: _not_found(routes)})
    # Otherwise a path that ends in a slash would be redirected instead of refused.
    app.router.redirect_slashes = False
    return app


# Starlette runs plain functions in threads that they share. Questions about the past may occupy these for long, and a
# supervisor must get its answer meanwhile. So no handler here is a plain function.
def _scraped(metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    async def scrape(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        # In a thread, because it renders all series and measures processes and files. Nothing else uses these threads.
        body = await asyncio.to_thread(encode, metrics.registry)
        return Response(body, headers=_NOT_STORED | {"Content-Type": content_type})

    return scrape


def _answered(
    metrics: Metrics, judge: Callable[[MetricSnapshot, int], Health]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        # The snapshot is replaced as a whole, so reading it waits for nothing.
        health = judge(metrics.snapshot, steady_ms())
        status = 200 if health.ok else 503
        return Response(health.body, status, headers=_NOT_STORED, media_type="application/json")

    return answer


def _not_found(routes: Sequence[BaseRoute]) -> Callable[[Request, Exception], Response]:
    served = ", ".join(route.path for route in routes if isinstance(route, Route) and "{" not in route.path)

    def refuse(request: Request, error: Exception) -> Response:
        detail = error.detail if isinstance(error, HTTPException) and error.detail != "Not Found" else ""
        text = detail or f"There is nothing here. Served are: {served}"
        return PlainTextResponse(text + "\n", 404, headers=_NOT_STORED)

    return refuse
