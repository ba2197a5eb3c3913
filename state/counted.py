"""What decisions are counted by, read from columns and their texts."""

import re
from collections import Counter
from itertools import compress
from typing import NamedTuple

from isrflow.decision_columns import DecisionColumns
from state.reason import Reason


class CountedBy(NamedTuple):
    """The reason, and of an election whether it was unclean or passed replicas over."""

    reason: str
    unclean: bool = False
    passes_over: bool = False


# No free text comes before a reason, and quotes within a value are escaped.
_REASON = re.compile(rb'"reason":"([A-Z_]+)"')
_ISR_AND_REPLICAS = re.compile(rb'"isr":\[([^\]]*)\].*"replicas":\[([^\]]*)\]')


def told_in(text: bytes) -> CountedBy:
    """Return what a decision is counted by, from its text."""
    match = _REASON.search(text)
    reason = match[1].decode() if match else ""
    return CountedBy(reason, b'"unclean":true' in text, b'"passed_over":' in text)


def reasons_in(columns: DecisionColumns) -> dict[CountedBy, int]:
    """Count decisions by what they tell, in its order."""
    counted: Counter[CountedBy] = Counter()
    for place, count in Counter(columns.column(1)).items():
        counted[told_in(columns.texts[place])] += count
    return dict(sorted(counted.items()))


def shrunk_without(columns: DecisionColumns) -> Counter[int]:
    """Count how often leaders took a broker out of ISRs, or left it outside, by its id."""
    found: Counter[int] = Counter()
    outside = {nth: _outside(text) for nth, text in enumerate(columns.texts) if told_in(text).reason == _SHRUNK}
    if not outside:
        return found
    places, replicas = columns.column(1), columns.replica_columns()
    count = Counter(places)
    for text, left_out in outside.items():
        for nth, is_place in left_out:
            if is_place:
                found.update(compress(replicas[nth], map(text.__eq__, places)))
            else:
                found[nth] += count[text]
    return found


_SHRUNK = str(Reason.ISR_SHRUNK)


def _outside(text: bytes) -> list[tuple[int, bool]]:
    """Return the replicas outside the ISR: ids, or their places in the assignment, and whether it is a place."""
    match = _ISR_AND_REPLICAS.search(text)
    isr, replicas = (match[nth].split(b",") for nth in (1, 2)) if match else ((), ())
    return [(int(one.strip(b"\1")), b"\1" in one) for one in replicas if one not in isr]
