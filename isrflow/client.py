"""A client of any kind of bus: publish events, wait for answers, read decisions."""

import time
import uuid
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

import msgspec

from isrflow.clock import now_ms
from isrflow.contract import AFTER_ALL_OF, Decided, Place
from isrflow.errors import NoAnswerError
from isrflow.field_advice import advice_about

Event = Mapping[str, Any]
Decision = dict[str, Any]
BEGINNING: Place = (0, -1)
ANSWER_TIMEOUT_S = 30.0
_DECISIONS_PER_READ = 1_000
_INT_MAX = 2**63 - 1
_ANSWERS = ("answer", "rejected")


class Log(Protocol):
    """The two logs of a bus, as each kind of bus has them. Every method may raise ``BusError``."""

    def publish(self, events: Sequence[bytes]) -> int | None:
        """Append events. Return the last one's seq; None if there is none."""
        ...

    def newest_decision(self) -> Place:
        """Return a place after all decisions that can be read now. The next decision comes after it."""
        ...

    def thinned(self) -> Place:
        """Return the place up to which retention has left only some decisions; before all of them if it left all."""
        ...

    def decisions(self, after: Place, limit: int, *, passing_over: bool) -> list[Decided]:
        """Return up to ``limit`` decisions after a place, in order.

        Raises ``TrimmedError`` if retention has removed any of them, unless ``passing_over`` skips those.
        """
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when there may be more decisions, or after ``timeout_s``."""
        ...

    def blocker(self) -> str:
        """Name the open transaction that keeps events from being decided; empty if none does, or if it is not known."""
        ...

    def close(self) -> None: ...


class Client:
    """An open bus. Several threads may use one, and a ``with`` statement closes it.

    Events are mappings with the fields of ``docs/contract-tables.md``; decisions are dictionaries with theirs. Every
    method may raise ``BusError``.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    def publish(self, *events: Event) -> int | None:
        """Publish events in order, and return the last one's seq, its place in the total order.

        An event without ``time_ms`` gets the present time. On SQLite the bus takes all events of a call or none.

        Raises ``ValueError`` for an event that cannot be written as JSON or has no ``kind``, and ``EngineOnlyError``
        for one that only the engine makes. Warns (``UserWarning``) of fields that the kind of event does not
        have, because the engine ignores them. The engine checks everything else, and answers.
        """
        texts = [_as_json(event, number) for number, event in enumerate(events, start=1)]
        for event in events:
            if advice := advice_about(event["kind"], event):
                warnings.warn(advice, stacklevel=2)
        return self._log.publish(texts)

    def ask(self, event: Event, timeout_s: float = ANSWER_TIMEOUT_S) -> Decision:
        """Publish one request and return its answer, an ``answer`` decision. If it is refused, ``message`` says why.

        The answer to a malformed request is ``INVALID_REQUEST``, and its ``message`` begins with the field's name. If
        not even the ``request_id`` can be read, a ``rejected`` decision is returned.

        A request without ``request_id`` gets one. Raises ``NoAnswerError`` after ``timeout_s``; the request stays
        published.
        """
        deadline_s = time.monotonic() + timeout_s
        after = self._log.newest_decision()
        seq = self.publish({"request_id": uuid.uuid4().hex, **event})
        while True:
            batch = self._log.decisions(after, _DECISIONS_PER_READ, passing_over=False)
            for decided in batch:
                if decided.seq == seq and (decision := _from_json(decided))["kind"] in _ANSWERS:
                    return decision
            # Other decisions may come without end, so they do not make the wait longer.
            if (left_s := deadline_s - time.monotonic()) <= 0:
                break
            if batch:
                after = (batch[-1].seq, batch[-1].idx)
            else:
                self._log.wait(left_s)
        blocker = self._log.blocker()
        why = f"events cannot be decided because of {blocker}" if blocker else "is an engine running on this bus?"
        raise NoAnswerError(f"no answer to event {seq} in {timeout_s:g} s: {why}")

    def decisions(
        self, after: Sequence[int] = BEGINNING, *, kinds: Collection[str] = (), wait_s: float = 0.0
    ) -> Iterator[Decision]:
        """Yield decisions after a place (seq, index), in order, and only of ``kinds`` if any are given.

        A place may be a list, as it comes back from JSON. Ends when no decision has come for ``wait_s``; with
        ``math.inf`` it never ends. Raises ``TrimmedError`` if retention has removed decisions after that place. From
        the beginning it starts with the oldest one that is left. Raises ``ValueError`` if ``after`` is not a place.
        """
        return self._decisions(_place(after), kinds, wait_s)

    def _decisions(self, after: Place, kinds: Collection[str], wait_s: float) -> Iterator[Decision]:
        last_s = time.monotonic()
        # A reader that begins anywhere else must hear that decisions are missing.
        thinned = self._log.thinned() if after[0] <= 0 else BEGINNING
        while True:
            batch = self._log.decisions(after, _DECISIONS_PER_READ, passing_over=after < thinned)
            for decided in batch:
                decision = _from_json(decided)
                if not kinds or decision["kind"] in kinds:
                    yield decision
            if batch:
                after, last_s = (batch[-1].seq, batch[-1].idx), time.monotonic()
                continue
            left_s = last_s + wait_s - time.monotonic()
            if left_s <= 0:
                return
            self._log.wait(left_s)

    def decisions_on(self, seq: int) -> list[Decision]:
        """Return the decisions that one event has led to so far."""
        found = []
        for decision in self.decisions((seq - 1, AFTER_ALL_OF)):
            if decision["seq"] != seq:
                break
            found.append(decision)
        return found

    def newest(self) -> Place:
        """Return a place after all decisions so far, to read on from there."""
        return self._log.newest_decision()

    def close(self) -> None:
        """Close the bus. Later calls raise ``BusError``, and so do calls that wait for decisions in other threads."""
        self._log.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _place(given: Sequence[int]) -> Place:
    if not isinstance(given, list | tuple) or [type(part) for part in given] != [int, int]:
        raise ValueError(f"{given!r:.200} is not a place: expected two whole numbers, (seq, index)")
    # SQLite has no larger ones, and no seq is.
    seq, index = (max(-_INT_MAX, min(part, _INT_MAX)) for part in given)
    return seq, index


def _from_json(decided: Decided) -> Decision:
    decision: Decision = msgspec.json.decode(decided.body)
    return decision


def _as_json(event: Event, number: int) -> bytes:
    if not isinstance(event, Mapping) or not isinstance(event.get("kind"), str):
        raise ValueError(f"event {number}: expected a mapping with the text field 'kind', got {event!r:.200}")
    try:
        return msgspec.json.encode({"time_ms": now_ms(), **event})
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"event {number}, a {event['kind']}, cannot be written as JSON: {error}") from error
