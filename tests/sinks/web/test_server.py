"""What the engine's address answers: metrics, health, 404, and an end."""

import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from sinks.metrics import Metrics, MetricsError
from sinks.web.routes import app_of
from sinks.web.server import WebServer
from tests.sinks.sample import sample


@pytest.fixture
def served() -> Iterator[int]:
    server = WebServer(app_of(sample()))
    port = server.serve("127.0.0.1", 0)
    assert port
    yield port
    server.close()


def get(port: int, path: str, method: str = "GET") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def test_metrics_are_served_over_http(served: int) -> None:
    status, form, text = get(served, "/metrics")
    assert (status, form.split(";")[0]) == (200, "text/plain")
    assert "isrflow_decided_seq 4000.0" in text


@pytest.mark.parametrize("path", ["/foo", "/metrics/", "/metrics/x", "//metrics", "/healthz/", "/%2e%2e/etc/passwd"])
def test_any_other_path_is_not_found(served: int, path: str) -> None:
    status, form, text = get(served, path)
    assert (status, form.split(";")[0]) == (404, "text/plain")
    assert "/metrics, /healthz, /readyz" in text


def test_nothing_can_be_written(served: int) -> None:
    assert get(served, "/metrics", "POST")[0] == 405


def test_a_closed_server_leaves_its_port() -> None:
    server = WebServer(app_of(Metrics()))
    port = server.serve("127.0.0.1", 0)
    assert port
    server.close()
    socket.create_server(("127.0.0.1", port)).close()
    # The same one again, as a job does that finds its port taken at first.
    assert server.serve("127.0.0.1", port) == port
    assert get(port, "/healthz")[0] == 200
    server.close()


def test_the_error_for_a_taken_port_says_what_to_set(served: int) -> None:
    with pytest.raises(MetricsError, match=rf"127.0.0.1:{served}: .*--set metrics.port=PORT"):
        WebServer(app_of(Metrics())).serve("127.0.0.1", served)


def test_port_minus_one_serves_nothing() -> None:
    assert WebServer(app_of(Metrics())).serve("127.0.0.1", -1) is None


def test_health_is_a_status_and_its_reasons() -> None:
    metrics = sample()
    server = WebServer(app_of(metrics))
    port = server.serve("127.0.0.1", 0)
    assert port
    try:
        assert get(port, "/healthz")[0] == get(port, "/readyz")[0] == 200
        metrics.gave_up()
        assert get(port, "/healthz")[0] == 200
        status, form, text = get(port, "/readyz")
        assert (status, form) == (503, "application/json")
        assert json.loads(text)["why"] == ["it does not decide: stopping"]
    finally:
        server.close()
