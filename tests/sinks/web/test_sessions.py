"""When the session of a browser ends, what it has open ends too."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog

from conf.security.exposure import Protection
from conf.security.token import Token
from tests.sinks.web.test_page import Served, Stream
from tests.support.waiting import TIMEOUT_S
from web import guard

TOKEN = "canary-of-the-sessions"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    return file


@pytest.fixture
def served(tmp_path: Path, file: Path) -> Iterator[Served]:
    served = Served(tmp_path / "bus.db", protection=Protection(Token(str(file), look_interval_s=0)))
    yield served
    served.close()


def cookie(end_s: int) -> str:
    return f"isrflow={end_s}.{Token('', TOKEN).signature(str(end_s))}"


def assert_ends(stream: Stream) -> None:
    ends_s = time.monotonic() + TIMEOUT_S
    while stream.answer.read1():
        assert time.monotonic() < ends_s, "the stream goes on"


HOLDERS: dict[str, Callable[[], dict[str, str]]] = {
    "browser": lambda: {"Cookie": cookie(int(time.time()) + 3_600)},
    "program": lambda: {"Authorization": f"Bearer {TOKEN}"},
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_new_token_ends_the_streams_of_those_who_know_the_former(served: Served, file: Path, holder: str) -> None:
    stream = Stream(served.port, **HOLDERS[holder]())
    assert stream.answer.status == 200
    assert stream.next("status")
    file.write_text("another-token-0123")
    assert_ends(stream)
    assert Stream(served.port, **HOLDERS[holder]()).answer.status == 401
    assert Stream(served.port, Authorization="Bearer another-token-0123").next("status")


def test_a_stream_ends_with_the_session(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(served.port, Cookie=cookie(int(time.time()) + 3_600))
    assert stream.next("status")
    later = SimpleNamespace(time=lambda: time.time() + 3_601)
    monkeypatch.setattr(guard, "time", later)
    assert_ends(stream)


def test_a_browser_that_leaves_in_the_middle_of_the_form_is_no_failure(served: Served) -> None:
    with structlog.testing.capture_logs() as lines:
        with socket.create_connection(("127.0.0.1", served.port or 0), TIMEOUT_S) as connection:
            connection.sendall(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\ntoken=")
            # The answer to the form waits for the rest, and this one shows that the request has come in.
            assert Stream(served.port, **HOLDERS["program"]()).next("status")
        assert Stream(served.port, **HOLDERS["program"]()).next("status")
        served.close()
    assert lines == []
