"""Fields that a kind of event does not have.

The engine ignores them, because an event may come from a newer program. But a topic with ``configs`` or ``settings`` is
made without its settings, and an event with ``validateOnly`` is carried out. So the publisher is warned.
"""

from collections.abc import Collection
from functools import cache
from pathlib import Path

import msgspec

_LIKENESS_MIN = 0.75
NAMED_MAX = 10
# The package imports no room that knows the events, so it has a list of their fields. A test compares it with them.
FILE = Path(__file__).with_name("event_fields.json")


def advice_about(kind: str, given: Collection[str]) -> str:
    """Return which fields of an event are ignored because its kind does not have them; empty if none is.

    ``given`` are the names of an event's fields. A kind of event that this version does not know gets no advice.
    """
    known = _fields().get(kind)
    if known is None or known.issuperset(given):
        return ""
    # Hardly any event gets here.
    import difflib

    unknown = [str(one) for one in given if one not in known]
    missing = sorted(known - set(given))
    near = [difflib.get_close_matches(name, missing, n=1, cutoff=_LIKENESS_MIN) for name in unknown]
    fields, are = ("field", "it is") if len(unknown) == 1 else ("fields", "they are")
    meant = ", ".join(repr(one) for found in near for one in found)
    hint = f"did you mean {meant}?" if all(near) else f"its fields are {', '.join(sorted(known))}"
    named = ", ".join(map(repr, unknown[:NAMED_MAX]))
    more = f" and {len(unknown) - NAMED_MAX} more" if len(unknown) > NAMED_MAX else ""
    return f"{kind} has no {fields} {named}{more}, so {are} ignored; {hint}"


@cache
def _fields() -> dict[str, frozenset[str]]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, frozenset[str]])
