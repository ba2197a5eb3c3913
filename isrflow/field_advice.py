"""Fields of events whose names are probably mistyped.

The engine ignores a field that a kind of event does not have, because authors may add some of their own. But a topic
with ``configs`` is made without its settings, and an event with ``validateOnly`` is carried out.
"""

from collections.abc import Collection
from functools import cache
from pathlib import Path

import msgspec

_LIKENESS_MIN = 0.75
# The package imports no room that knows the events, so it has a list of their fields. A test compares it with them.
FILE = Path(__file__).with_name("event_fields.json")


def advice_about(kind: str, given: Collection[str]) -> str:
    """Say which field is ignored although its name is like that of one which is missing; or nothing.

    ``given`` are the names of an event's fields. Nothing is said of a kind of event that this version does not know.
    """
    known = _fields().get(kind)
    if known is None or known.issuperset(given):
        return ""
    # Hardly any event gets here.
    import difflib

    for name in (one for one in given if one not in known and isinstance(one, str)):
        near = difflib.get_close_matches(name, sorted(known - set(given)), n=1, cutoff=_LIKENESS_MIN)
        if near:
            return f"{kind} has no field {name!r}, so it is ignored; did you mean {near[0]!r}?"
    return ""


@cache
def _fields() -> dict[str, frozenset[str]]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, frozenset[str]])
