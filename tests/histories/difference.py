"""Describe where decisions first differ from the recorded ones."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

EVENT_CHARS_MAX = 600
NAMING_FIELDS = ("kind", "topic", "partition", "broker")


def first_difference(events: Mapping[int, bytes], recorded: Sequence[bytes], decided: Sequence[bytes]) -> str | None:
    """Describe, field by field, the first decision that differs from the recorded one; None if none does.

    ``events`` maps a seq to its event.
    """
    for before, now in zip_longest(recorded, decided):
        if before != now:
            return "\n".join(_told(events, _fields(before), _fields(now)))
    return None


def _told(events: Mapping[int, bytes], before: dict[str, Any], now: dict[str, Any]) -> Iterable[str]:
    seq, index = min(_place(fields) for fields in (before, now) if fields)
    yield f"the first decision that differs: seq {seq}, index {index}"
    yield f"  event {seq}: {_event(events[seq])}"
    if before and now and _place(before) == _place(now):
        yield from _field_by_field(before, now)
    elif now and _place(now) == (seq, index):
        yield "  was not recorded, and is decided now:"
        yield from (f"    {name}: {_value(now, name)}" for name in now)
    else:
        yield "  was recorded, and is decided no longer:"
        yield from (f"    {name}: {_value(before, name)}" for name in before)


def _field_by_field(before: dict[str, Any], now: dict[str, Any]) -> Iterable[str]:
    changed = [name for name in {**before, **now} if _value(before, name) != _value(now, name)]
    yield from (f"    {name}: {_value(now, name)}" for name in NAMING_FIELDS if name in now and name not in changed)
    yield from (f"    {name}: was {_value(before, name)}, is {_value(now, name)}" for name in changed)
    if not changed:
        yield "    the same fields and values, written in other bytes"


def _place(fields: dict[str, Any]) -> tuple[int, int]:
    return fields["seq"], fields["index"]


def _value(fields: dict[str, Any], name: str) -> str:
    return json.dumps(fields[name]) if name in fields else "not there"


def _event(raw: bytes) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    return text if len(text) <= EVENT_CHARS_MAX else f"{text[:EVENT_CHARS_MAX]} ... ({len(text)} characters)"


def _fields(body: bytes | None) -> dict[str, Any]:
    return {} if body is None else dict(json.loads(body))
