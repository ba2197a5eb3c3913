"""Shorten the error messages in a response, because they may quote very long input."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from brokers.gateways.kraft.messages import layouts
from brokers.wire.layout import FieldLayout
from brokers.wire.schema import Values

MESSAGE_LENGTH_MAX = 1_000  # in characters; a Kafka string has at most 32,767 bytes
_MESSAGE = "ErrorMessage"


def with_short_messages(request: str, values: Values) -> Values:
    """Return the values of the response to ``request``, with each message cut after ``MESSAGE_LENGTH_MAX``."""
    shortened: Values = _shortened(values) if _may_have_messages(request) else values
    return shortened


@cache
def _may_have_messages(name: str) -> bool:
    """Return whether the response to this request has a field for an error message."""
    return _has_messages(layouts()[f"{name}Response"].fields)


def _has_messages(fields: Iterable[FieldLayout]) -> bool:
    return any(field.name == _MESSAGE or _has_messages(field.fields) for field in fields)


def _shortened(values: Any) -> Any:
    match values:
        case dict():
            return {name: _short(one) if name == _MESSAGE else _shortened(one) for name, one in values.items()}
        case list():
            return [_shortened(one) for one in values]
    return values


def _short(message: str | None) -> str | None:
    return message if message is None or len(message) <= MESSAGE_LENGTH_MAX else f"{message[:MESSAGE_LENGTH_MAX]}..."
