"""A download ends, whatever the server does."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conf import jars
from conf import jars as under_test
from conf.jars import TRIES_MAX, download


class Server(ThreadingHTTPServer):
    """A server whose answers a test names: (status, body, announced length)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, bytes, int]] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        status, body, length = self.server.answers[min(len(self.server.paths), len(self.server.answers)) - 1]
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(under_test, "PAUSE_S", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_download_that_broke_off_is_repeated(server: Server, tmp_path: Path) -> None:
    server.answers = [(503, b"", 0), (200, b"half", 8), (200, b"the whole", 9)]
    download(f"{server.url}/a.jar", tmp_path / "a.jar")
    assert (tmp_path / "a.jar").read_bytes() == b"the whole"


@pytest.mark.parametrize(
    ("answer", "tries"), [((404, b"", 0), 1), ((500, b"", 0), TRIES_MAX), ((200, b"x", 2), TRIES_MAX)]
)
def test_a_download_that_keeps_failing_ends(
    server: Server, answer: tuple[int, bytes, int], tries: int, tmp_path: Path
) -> None:
    server.answers = [answer]
    with pytest.raises(OSError):
        download(f"{server.url}/a.jar", tmp_path / "a.jar")
    assert len(server.paths) == tries


def test_a_file_without_an_end_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(under_test, "FILE_BYTES_MAX", 3)
    server.answers = [(200, b"1234", 4)]
    with pytest.raises(OSError, match="more than 3 bytes"):
        download(f"{server.url}/a.jar", tmp_path / "a.jar")


def test_a_jar_comes_from_its_place_in_the_repository(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ISRFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    monkeypatch.setattr(jars, "MAVEN_CENTRAL", f"{server.url}/mirror")
    coordinate = "org.sample:thing:1.0"
    lock = jars.Lock({"sample": [coordinate]}, {coordinate: hashlib.sha256(b"a jar").hexdigest()})
    monkeypatch.setattr(jars, "read_lock", lambda: lock)
    server.answers = [(200, b"a jar", 5)]
    (path,) = jars.fetch("sample")
    assert path.read_bytes() == b"a jar"
    assert server.paths == ["/mirror/org/sample/thing/1.0/thing-1.0.jar"]
