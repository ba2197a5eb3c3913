"""Access to metrics, health and the page: with a token, over TLS, and on loopback without either."""

import contextlib
import http.client
import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from brokers.gateways.shared import metrics as gateway_metrics
from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.process.metrics import OwnMetrics, served
from conf.loader import load
from conf.security.authority import Authority
from conf.security.exposure import ExposureError, Protection, is_loopback, protection_of
from conf.security.tls import TlsFiles, client_contexts, server_context
from conf.security.token import Token, TokenError, token_of
from conf.settings import Settings
from sinks.web.routes import app_of
from tests.sinks.sample import sample
from tests.support.waiting import TIMEOUT_S, wait_until
from web import connection_limits
from web.server import WebServer

TOKEN = "canary-of-the-metrics"
PATHS = ("/metrics", "/healthz", "/readyz", "/standbyz", "/nothing", "/login")
Answer = tuple[int, dict[str, str], str]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def port(authority: Authority) -> Iterator[int]:
    keystore = TlsFiles(keystore=str(authority.issue("engine")))
    server = WebServer(app_of(sample()), Protection(Token("", TOKEN), server_context(keystore)))
    found = server.serve("127.0.0.1", 0)
    assert found
    yield found
    server.close()


def asked(authority: Authority, port: int, path: str, body: str = "", **headers: str) -> Answer:
    context = client_contexts(TlsFiles(truststore=str(authority.certificate_file)))()
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=context)
    try:
        connection.request("POST" if body else "GET", path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode()
    finally:
        connection.close()


def test_nothing_is_served_without_the_token(authority: Authority, port: int) -> None:
    wrong = ("", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff")
    for path in PATHS:
        for authorization in wrong:
            status, headers, text = asked(authority, port, path, Authorization=authorization)
            assert status == 401
            assert headers["www-authenticate"].startswith("Bearer")
            assert "isrflow_" not in text and TOKEN not in text + str(headers)
    status, _, text = asked(authority, port, "/metrics", Authorization=f"Bearer {TOKEN}")
    assert status == 200 and "isrflow_decided_seq" in text
    assert asked(authority, port, f"/metrics?token={TOKEN}")[0] == 401, "a token in an address would be in logs"


def test_a_person_types_the_token_once(authority: Authority, port: int) -> None:
    status, headers, text = asked(authority, port, "/", Accept="text/html")
    assert status == 401 and '<form method="post" action="/login">' in text
    assert "form-action 'self'" in headers["content-security-policy"]
    assert asked(authority, port, "/login", urlencode({"token": "no" + TOKEN}))[0] == 403
    assert asked(authority, port, "/login", "token=" + "x" * 10_000)[0] == 403
    status, headers, text = asked(authority, port, "/login", urlencode({"token": TOKEN}))
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert re.match(r"__Host-isrflow=\d+\.[0-9a-f]{64}; HttpOnly; Max-Age=\d+; Path=/; SameSite=strict; Secure", cookie)
    assert TOKEN not in cookie + text
    pair = cookie.split(";")[0]
    assert asked(authority, port, "/metrics", Cookie=pair)[0] == 200
    name, _, value = pair.partition("=")
    end, _, signature = value.partition(".")
    for forged in (f"{int(end) + 1}.{signature}", f"{end}.", f".{signature}", f"{end}.{'0' * 64}", "x"):
        assert asked(authority, port, "/metrics", Cookie=f"{name}={forged}")[0] == 401


def test_a_session_ends_at_its_time(authority: Authority, port: int) -> None:
    now_s = int(time.time())
    for end_s, status in ((now_s + 3_600, 200), (now_s - 1, 401)):
        cookie = f"__Host-isrflow={end_s}.{Token('', TOKEN).signature(str(end_s))}"
        assert asked(authority, port, "/metrics", Cookie=cookie)[0] == status


def test_a_person_types_the_token_nowhere_else(authority: Authority, port: int) -> None:
    assert asked(authority, port, "/metrics", urlencode({"token": TOKEN}))[0] == 401


def test_a_changed_token_file_ends_former_tokens_and_sessions(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    token = Token(str(file), look_interval_s=0)
    signed = token.signature("1")
    assert token.is_text(TOKEN)
    file.write_text("another-token-0123\n")
    assert not token.is_text(TOKEN) and token.is_text("another-token-0123")
    assert token.signature("1") != signed
    file.write_text("short")
    assert token.is_text("another-token-0123"), "the former one stays until the file is right"


def test_a_wrong_token_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for text in ("", "tooshort-canary", "canary with spaces in it", "canary-" + "ä" * 20):
        file.write_text(text)
        with pytest.raises(TokenError, match=r"metrics.token.file: .*token: expected") as caught:
            token_of(str(file), {})
        assert "canary" not in str(caught.value)
    with pytest.raises(TokenError, match="ISRFLOW_METRICS_TOKEN: expected 16"):
        token_of("", {"ISRFLOW_METRICS_TOKEN": "canary"})
    with pytest.raises(TokenError, match="both set"):
        token_of(str(file), {"ISRFLOW_METRICS_TOKEN": TOKEN})
    # A process with the variable has no setting of that name, so nothing describes it.
    load(environment={"ISRFLOW_METRICS_TOKEN": TOKEN})


def test_other_machines_are_served_only_with_tls_and_a_token(authority: Authority) -> None:
    keystore = str(authority.issue("engine"))
    with_token = {"ISRFLOW_METRICS_TOKEN": TOKEN}
    for host in ("0.0.0.0", "::", "10.0.0.1", "engine.example", "", "127.0.0.1.example"):
        assert not is_loopback(host)
        for held, environment in (("", {}), (keystore, {}), ("", with_token)):
            with pytest.raises(ExposureError, match=f"metrics.host: {re.escape(host)} is not loopback"):
                protection_of(Settings(metrics_host=host, metrics_ssl_keystore_location=held), environment)
        protection = protection_of(Settings(metrics_host=host, metrics_ssl_keystore_location=keystore), with_token)
        assert protection.token and protection.scheme == "https"
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        assert protection_of(Settings(metrics_host=host, metrics_port=0), {}) == Protection()
    assert protection_of(Settings(metrics_host="0.0.0.0", metrics_port=-1), {}) == Protection()


def test_a_gateway_protects_its_metrics_in_the_same_way(authority: Authority) -> None:
    keystore = TlsFiles(keystore=str(authority.issue("gateway")))
    metrics = OwnMetrics(gateway_metrics.SERIES, lambda: GatewayMeasures(gateway=100, leads=True, quorum_epoch=3))
    protection = Protection(Token("", TOKEN), server_context(keystore))
    with served(metrics, "127.0.0.1", 0, protection) as port:
        assert port
        # A client that says nothing, and one that speaks no TLS, hold up nobody.
        with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert asked(authority, port, "/metrics")[0] == 401
            status, _, text = asked(authority, port, "/metrics", Authorization=f"Bearer {TOKEN}")
            assert status == 200 and "isrflow_gateway_quorum_epoch 3.0" in text


@pytest.mark.parametrize("is_https", [False, True])
def test_silent_connections_end_and_leave_room(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, is_https: bool
) -> None:
    monkeypatch.setattr(connection_limits, "SILENCE_S", 0.2)
    monkeypatch.setattr(connection_limits, "HANDSHAKE_S", 0.2)
    tls = server_context(TlsFiles(keystore=str(authority.issue("engine")))) if is_https else None
    server = WebServer(app_of(sample()), Protection(None, tls))
    port = server.serve("127.0.0.1", 0)
    assert port
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    try:
        for number, one in enumerate(silent):
            one.settimeout(TIMEOUT_S)
            if number % 2:
                one.sendall(b"GET /metrics HTTP/1.1\r\nX-Half")
        ends = time.monotonic() + TIMEOUT_S
        for one in silent:
            try:
                while one.recv(1_000):
                    assert time.monotonic() < ends
            except ConnectionError:
                pass
        if is_https:
            wait_until(lambda: asked(authority, port, "/healthz")[0] in (200, 503), "an answer")
        else:
            socket.create_connection(("127.0.0.1", port)).close()
    finally:
        for one in silent:
            one.close()
        server.close()


def test_plain_text_to_the_tls_port_gets_nothing(authority: Authority, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n")
        try:
            said = plain.recv(1_000)
        except ConnectionError:
            said = b""
    assert b"isrflow" not in said
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(authority.certificate_file)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", port), 30) as plain, pytest.raises(ssl.SSLError):
        old.wrap_socket(plain, server_hostname="127.0.0.1")


def test_connections_that_never_shake_hands_are_limited(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HANDSHAKE_S", 120.0)
    monkeypatch.setattr(connection_limits, "SOCKETS_MAX", 10)
    tls = server_context(TlsFiles(keystore=str(authority.issue("engine"))))
    server = WebServer(app_of(sample()), Protection(None, tls))
    port = server.serve("127.0.0.1", 0)
    assert port
    with contextlib.ExitStack() as stack:
        stack.callback(server.close)
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(13)]
        for one in silent[:3]:
            one.settimeout(TIMEOUT_S)
            with contextlib.suppress(ConnectionError):
                assert one.recv(1) == b"", "the oldest make room"
        assert asked(authority, port, "/healthz")[0] in (200, 503)


NAMED = ("evil.example", "evil.example:9464", "127.0.0.1.example", "localhost.example", "[::1", "x", "")
OWN = ("127.0.0.1", "127.0.0.1:9464", "localhost", "LOCALHOST:80", "[::1]:9464", "10.0.0.1:1")


def test_without_a_token_no_name_that_others_point_here_is_answered() -> None:
    """A page from elsewhere could have its own name point here, and would then read this one as its own."""
    metrics = OwnMetrics(gateway_metrics.SERIES, lambda: GatewayMeasures(gateway=100, leads=True, quorum_epoch=3))
    server = WebServer(app_of(sample()))
    engine = server.serve("127.0.0.1", 0)
    with contextlib.closing(server), served(metrics, "127.0.0.1", 0) as gateway:
        for port in (engine, gateway):
            for host, status in (*dict.fromkeys(NAMED, 421).items(), *dict.fromkeys(OWN, 200).items()):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
                connection.request("GET", "/metrics", headers={"Host": host})
                assert (connection.getresponse().status, host) == (status, host)
                connection.close()


def test_with_a_token_any_name_is_answered(authority: Authority, port: int) -> None:
    status, _, _ = asked(authority, port, "/metrics", Authorization=f"Bearer {TOKEN}", Host="engine.example")
    assert status == 200
