"""What the engine's address answers: metrics, health, 404, and an end."""

import http.client
import json
import socket
from collections.abc import Iterator

import pytest
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sinks.metrics import Metrics
from sinks.web.routes import app_of
from tests.sinks.sample import sample
from tests.support.waiting import TIMEOUT_S, wait_until
from web.server import MetricsError, WebServer


@pytest.fixture
def served() -> Iterator[int]:
    server = WebServer(app_of(sample()))
    port = server.serve("127.0.0.1", 0)
    assert port
    yield port
    server.close()


def get(port: int, path: str, method: str = "GET") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
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
    assert "/metrics, /healthz, /readyz, /standbyz" in text


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
    with pytest.raises(MetricsError, match=rf"127.0.0.1:{served}: Address already in use; .*--set metrics.port=PORT"):
        WebServer(app_of(Metrics())).serve("127.0.0.1", served)


def test_port_minus_one_serves_nothing() -> None:
    assert WebServer(app_of(Metrics())).serve("127.0.0.1", -1) is None


def test_health_is_a_status_and_its_reasons() -> None:
    metrics = sample()
    server = WebServer(app_of(metrics))
    port = server.serve("127.0.0.1", 0)
    assert port
    try:
        assert [get(port, path)[0] for path in ("/healthz", "/readyz", "/standbyz")] == [200, 200, 200]
        metrics.gave_up()
        assert get(port, "/healthz")[0] == 200
        status, form, text = get(port, "/readyz")
        assert (status, form) == (503, "application/json")
        assert json.loads(text)["why"] == ["it does not decide: stopping"]
    finally:
        server.close()


def test_the_servers_complaints_are_lines_of_the_engines_log(served: int, capfd: pytest.CaptureFixture[str]) -> None:
    with structlog.testing.capture_logs() as lines:
        with socket.create_connection(("127.0.0.1", served), 10) as connection:
            connection.sendall(b"no HTTP\r\n\r\n")
            assert b"400" in connection.recv(1_000)
        wait_until(lambda: bool(lines), "a log line")
    assert [(line["log_level"], line["event"]) for line in lines] == [("warning", "Invalid HTTP request received.")]
    assert capfd.readouterr().err == ""


def test_a_failing_answer_is_one_line_with_its_error(capfd: pytest.CaptureFixture[str]) -> None:
    def fail(request: Request) -> Response:
        raise RuntimeError("broken\non two lines")

    server = WebServer(app_of(Metrics(), [Route("/broken", fail)]))
    port = server.serve("127.0.0.1", 0)
    try:
        with structlog.testing.capture_logs() as lines:
            assert get(port or 0, "/broken")[0] == 500
            wait_until(lambda: bool(lines), "a log line")
        assert [line["log_level"] for line in lines] == ["error"]
        assert "broken" in lines[0]["error"]
        assert capfd.readouterr().err == ""
    finally:
        server.close()
