"""A gateway under the eyes of others: its metrics and its health, from before it is in reach of the bus."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from brokers.gateways.shared.gateway_settings import GatewaySettings
from brokers.gateways.shared.health import liveness, readiness
from brokers.gateways.shared.metrics import GatewayMeasures, GatewaySeries
from brokers.process.metrics import OwnMetrics, served
from bus.clock import steady_ms
from conf.readiness import ReadyOnce
from conf.security.exposure import Protection

INTERVAL_S = 1.0


@contextlib.asynccontextmanager
async def watched(
    measures: Callable[[], GatewayMeasures],
    series: Sequence[GatewaySeries],
    settings: GatewaySettings,
    protection: Protection,
) -> AsyncIterator[None]:
    """Serve /metrics, /healthz and /readyz while the block runs. ``measures`` is called from other threads.

    The service manager hears once that the gateway is ready.

    Raises ``MetricsError`` if the port is taken.
    """
    ran_ms = steady_ms()

    ready = ReadyOnce()

    async def beat() -> None:
        nonlocal ran_ms
        while True:
            ran_ms = steady_ms()
            ready.look(readiness(measures()).ok)
            await asyncio.sleep(INTERVAL_S)

    health = {
        "/healthz": lambda: liveness(measures(), steady_ms() - ran_ms),
        "/readyz": lambda: readiness(measures()),
    }
    beating = asyncio.create_task(beat())
    try:
        with served(OwnMetrics(series, measures), settings.metrics_host, settings.metrics_port, protection, health):
            yield
    finally:
        beating.cancel()
