"""Serve the engine's address at once, or as soon as the previous job has left it."""

import math
import time

import structlog

from sinks.web.site import Site
from web.server import MetricsError

RETRY_INTERVAL_S = 3.0

logger = structlog.get_logger("isrflow.job")


class Endpoint:
    """A site on one address, which the previous job may still hold."""

    def __init__(self, site: Site, host: str, port: int, retry_interval_s: float = RETRY_INTERVAL_S) -> None:
        self._site = site
        self._host = host
        self._port = port
        self._retry_interval_s = retry_interval_s
        self._retry_at_s = math.inf

    def open(self) -> None:
        """Serve from now on. Raises ``MetricsError``."""
        self._retry_at_s = math.inf
        port = self._site.serve(self._host, self._port)
        if port is not None:
            address = f"{self._site.scheme}://{self._host}:{port}"
            logger.info("serving metrics", url=f"{address}/metrics", page=f"{address}/")

    def open_when_free(self) -> None:
        """Serve now if the port is free, or else at a later ``retry``. The engine decides meanwhile."""
        try:
            self.open()
        except MetricsError as error:
            logger.error("the metrics port is not free; going on without metrics until it is", error=str(error))
            self._retry_at_s = time.monotonic() + self._retry_interval_s

    def retry(self) -> None:
        """Try again if metrics are not served yet and the last attempt is long enough ago. Cheap to call often."""
        if time.monotonic() < self._retry_at_s:
            return
        try:
            self.open()
        except MetricsError:
            self._retry_at_s = time.monotonic() + self._retry_interval_s

    def close(self) -> None:
        """Stop serving."""
        self._site.close()
