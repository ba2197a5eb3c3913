"""The live page: its files, its stream, and the questions that it asks."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from sinks.web.live import Live
from sinks.web.past import PastAnswers, PastError
from sinks.web.push import Push
from sinks.web.view import encode, gone
from web.guard import IS_STILL_ALLOWED

DECISIONS_MAX = 20
TOPICS_MAX = 20
NAME_MAX = 249
QUESTION_TIMEOUT_S = 20.0
# The question that is answered and the waiting ones. Each keeps a thread, of which Starlette has 40.
QUESTIONS_MAX = 8
MEDIA_TYPES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
    **{
        f"{name}.js": "text/javascript"
        for name in ("page", "charts", "detail", "freshness", "lists", "search", "stream", "words")
    },
}
# The browser loads and runs nothing from elsewhere, even if a topic's name contains markup.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_routes(push: Push, live: Live, past: PastAnswers | None = None) -> Sequence[BaseRoute]:
    """Return the routes of the page. Without ``past`` it shows only what this process has seen itself."""
    questions = _Questions(live, past)
    return [
        Route("/", _file("page.html")),
        *(Route(f"/page/{name}", _file(name)) for name in MEDIA_TYPES if name != "page.html"),
        Route("/page/events", _Events(push), methods=["GET"]),
        Route("/page/partition", questions.partition),
        Route("/page/topics", questions.topics),
        Route("/page/topic", questions.topic),
        Route("/page/past", questions.past),
    ]


def _file(name: str) -> Callable[[Request], Response]:
    body = (files("sinks.web") / "static" / name).read_bytes()

    def send(request: Request) -> Response:
        return Response(body, headers=_HEADERS, media_type=MEDIA_TYPES[name])

    return send


def _always() -> bool:
    return True


class _Events:
    """The stream of events, for as many browsers as there are places."""

    def __init__(self, push: Push) -> None:
        self._push = push

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Counted here, because the stream itself begins only later, or never if its browser has left.
        with self._push.place() as is_free:
            await self._answer(scope, is_free)(scope, receive, send)

    def _answer(self, scope: Scope, is_free: bool) -> Response:
        if not is_free:
            return PlainTextResponse("too many browsers are open\n", 503, headers={"Retry-After": "5"})
        headers = _HEADERS | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if scope["method"] == "HEAD":
            return Response(headers=headers, media_type="text/event-stream")
        stream = self._push.stream(scope.get(IS_STILL_ALLOWED, _always))
        return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


class _BusyError(PastError):
    """A question about the past is refused, because others take too long or too many wait."""

    def __init__(self) -> None:
        super().__init__("other questions about the past are taking long: ask again later")


class _Questions:
    """The answers to the page's questions. Questions about the past are answered one at a time, and only a few wait."""

    def __init__(self, live: Live, past: PastAnswers | None) -> None:
        self._live = live
        self._past = past
        self._places = threading.BoundedSemaphore(QUESTIONS_MAX)
        self._turn = threading.Lock()

    def partition(self, request: Request) -> Response:
        topic, number = request.query_params.get("topic", ""), request.query_params.get("partition", "")
        seq = request.query_params.get("seq", "")
        if not topic or len(topic) > NAME_MAX or not _is_number(number, 7) or not (not seq or _is_number(seq, 18)):
            return _refused(400, "expected ?topic=NAME&partition=NUMBER, and perhaps &seq=SEQ")
        partition = int(number)
        decisions = self._live.recent.of(topic, partition, DECISIONS_MAX)
        picture = self._live.picture
        row = next((one for one in picture.summary.rows if (one.topic, one.partition) == (topic, partition)), None)
        replicas = {*(row.replicas if row else ()), *(number for one in decisions for number in one.replicas)}
        answer: dict[str, Any] = {
            "topic": topic,
            "partition": partition,
            "row": row,
            "decisions": decisions,
            "gone": gone(picture, replicas),
            "explanation": None,
            "why_not": "",
        }
        if self._past:
            try:
                answer["explanation"] = msgspec.Raw(
                    self._asked(lambda past: past.explain(topic, partition, int(seq) if seq else None))
                )
            except PastError as error:
                answer["why_not"] = str(error)
        return _json(answer)

    def topics(self, request: Request) -> Response:
        text = request.query_params.get("match", "").strip()
        if not text or len(text) > NAME_MAX:
            return _refused(400, "expected ?match=PART of a topic's name")
        names, count = self._live.topics_like(text, TOPICS_MAX)
        return _json({"match": text, "topics": names, "count": count})

    def topic(self, request: Request) -> Response:
        topic, seq = request.query_params.get("topic", ""), request.query_params.get("seq", "")
        if not topic or len(topic) > NAME_MAX or not (not seq or _is_number(seq, 18)):
            return _refused(400, "expected ?topic=NAME, and perhaps &seq=SEQ")
        return self._answered(lambda past: past.topic(topic, int(seq) if seq else None))

    def past(self, request: Request) -> Response:
        text = request.query_params.get("time_ms", "")
        if not _is_number(text, 15):
            return _refused(400, "expected ?time_ms=MILLISECONDS since the Unix epoch")
        return self._answered(lambda past: past.at(int(text)))

    def _answered(self, question: Callable[[PastAnswers], bytes]) -> Response:
        if self._past is None:
            return _refused(404, "this engine does not read the past")
        try:
            return _json(msgspec.Raw(self._asked(question)))
        except _BusyError as error:
            return _refused(503, str(error), {"Retry-After": "10"})
        except PastError as error:
            return _refused(409, str(error))

    def _asked(self, question: Callable[[PastAnswers], bytes]) -> bytes:
        assert self._past is not None, "only an engine that reads the past is asked about it"
        with self._admitted():
            return question(self._past)

    @contextlib.contextmanager
    def _admitted(self) -> Iterator[None]:
        """Wait for the turn. Raises ``_BusyError`` if that takes too long, or at once if enough others wait."""
        if not self._places.acquire(blocking=False):
            raise _BusyError
        try:
            if not self._turn.acquire(timeout=QUESTION_TIMEOUT_S):
                raise _BusyError
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._places.release()


def _is_number(text: str, digits_max: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= digits_max


def _json(answer: object, status: int = 200, headers: Mapping[str, str] = _HEADERS) -> Response:
    return Response(encode(answer), status, headers=headers, media_type="application/json")


def _refused(status: int, why: str, more_headers: Mapping[str, str] | None = None) -> Response:
    return _json({"error": why}, status, _HEADERS | dict(more_headers or {}))
