"""Metrics are served once the former job has released the port."""

import socket

import pytest

from sinks.metrics import Metrics
from sinks.web.routes import app_of
from streaming.metrics_endpoint import Endpoint
from tests.support.scrape import scrape
from web.server import MetricsError, WebServer


def test_a_taken_port_is_retried_until_it_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        endpoint = Endpoint(WebServer(app_of(Metrics())), "127.0.0.1", port, retry_interval_s=0)
        with pytest.raises(MetricsError):
            endpoint.open()
        endpoint.open_when_free()
        endpoint.retry()
    endpoint.retry()
    try:
        assert scrape(f"http://127.0.0.1:{port}/metrics")
        # It already serves, so it does nothing: to bind its own port again would fail.
        endpoint.retry()
    finally:
        endpoint.close()
