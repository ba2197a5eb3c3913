"""While questions about the past take long, everything else is answered: health, metrics, and what the page knows."""

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from sinks.web import page_routes
from tests.sinks.web.test_page import Served, Told
from tests.support.waiting import TIMEOUT_S, wait_until
from web import request_limit

# More than the threads that Starlette has (40), and fewer than the requests that the server answers (64).
QUESTIONS = 60
# Much shorter than a question waits for its turn.
ANSWER_S_MAX = 5.0


class Blocked(Told):
    """A past that answers nothing until the test lets it."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()

    def at(self, time_ms: int) -> bytes:
        assert self.may_answer.wait(TIMEOUT_S)
        return super().at(time_ms)


class Crowd:
    """Many browsers that ask about the past at once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._pool = ThreadPoolExecutor(QUESTIONS)
        self._asked = threading.Barrier(QUESTIONS + 1)
        self.answers: list[Future[int]] = []

    def ask(self) -> None:
        """Send all questions."""
        self.answers = [self._pool.submit(self._one) for _ in range(QUESTIONS)]
        self._asked.wait(TIMEOUT_S)

    def _one(self) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", "/page/past?time_ms=5000")
            self._asked.wait(TIMEOUT_S)
            return connection.getresponse().status
        finally:
            connection.close()

    def refused(self) -> int:
        return sum(answer.done() and answer.result() == 503 for answer in self.answers)


@pytest.fixture
def past() -> Blocked:
    return Blocked()


@pytest.fixture
def served(tmp_path: Path, past: Blocked) -> Iterator[Served]:
    made = Served(tmp_path / "bus.db", past)
    yield made
    past.may_answer.set()
    made.close()


def answer(served: Served, path: str) -> tuple[int, bytes]:
    """Return the status and the body, if they come soon."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port or 0, timeout=ANSWER_S_MAX)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_health_and_metrics_do_not_wait_for_the_past(served: Served, past: Blocked) -> None:
    crowd = Crowd(served.port or 0)
    crowd.ask()
    assert answer(served, "/healthz")[0] == 200
    assert answer(served, "/readyz")[0] == 503, "it has decided nothing yet"
    assert answer(served, "/metrics")[0] == 200
    past.may_answer.set()
    assert {question.result(TIMEOUT_S) for question in crowd.answers} <= {200, 503}


def test_only_a_few_questions_wait_and_the_others_are_refused_at_once(served: Served, past: Blocked) -> None:
    crowd = Crowd(served.port or 0)
    crowd.ask()
    wait_until(lambda: crowd.refused() == QUESTIONS - page_routes.QUESTIONS_MAX, "all but a few to be refused")
    status, body = answer(served, "/page/past?time_ms=5000")
    assert (status, json.loads(body)["error"]) == (
        503,
        "other questions about the past are taking long: ask again later",
    )
    # What this process knows by itself is shown without the past.
    status, body = answer(served, "/page/partition?topic=orders&partition=0")
    assert (status, json.loads(body)["why_not"][:15]) == (200, "other questions")
    past.may_answer.set()
    assert sorted(question.result(TIMEOUT_S) for question in crowd.answers)[: page_routes.QUESTIONS_MAX] == (
        [200] * page_routes.QUESTIONS_MAX
    )
    assert answer(served, "/page/past?time_ms=5000")[0] == 200


def test_a_supervisor_is_answered_while_too_many_requests_are_open(
    served: Served, past: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_limit, "REQUESTS_MAX", page_routes.QUESTIONS_MAX)
    crowd = Crowd(served.port or 0)
    crowd.ask()
    wait_until(lambda: answer(served, "/metrics") == (503, b"too many requests are open\n"), "all places to be taken")
    assert answer(served, "/healthz")[0] == 200
    assert answer(served, "/readyz")[0] == 503
    assert json.loads(answer(served, "/readyz")[1]), "it says what it measured, and is not refused"
    past.may_answer.set()
    assert {question.result(TIMEOUT_S) for question in crowd.answers} <= {200, 503}
    assert answer(served, "/metrics")[0] == 200
