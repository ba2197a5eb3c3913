"""Answers to requests about several things, each of which is refused here or decided by the engine."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from brokers.gateways.kraft.messages import Request
from brokers.gateways.shared.apis.asking import Asking, error_of
from brokers.wire.errors import RefusedError
from brokers.wire.schema import Values
from state.decisions import Answer
from state.event import AdminEvent

K = TypeVar("K")
E = TypeVar("E", bound=AdminEvent)


async def responses_to(
    context: Asking, request: Request, outcomes: Mapping[K, E | RefusedError], respond: Callable[[K, Values], Values]
) -> list[Values]:
    """Ask the engine for everything that is not refused. ``respond`` makes a response of a key and its error."""
    events = [one for one in outcomes.values() if not isinstance(one, RefusedError)]
    answers = await context.ask_as_admin(request, events)
    return await context.offload(len(outcomes), _responses, outcomes, iter(answers), respond)


def _responses(
    outcomes: Mapping[K, E | RefusedError], answers: Iterator[Answer], respond: Callable[[K, Values], Values]
) -> list[Values]:
    return [
        respond(key, refused_with(one) if isinstance(one, RefusedError) else error_of(next(answers)))
        for key, one in outcomes.items()
    ]


def refused_with(refusal: RefusedError) -> Values:
    """Return the fields of a response that carry a refusal."""
    return {"ErrorCode": refusal.code, "ErrorMessage": str(refusal)}
