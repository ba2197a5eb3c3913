"""The operations of an observed controller, found on the bus by their offsets in the observed log."""

from collections.abc import Collection, Mapping

import msgspec

from bus.interface import Bus
from history import log
from state.observed_events import BESIDE_THE_LOG

_KIND = b'"kind":"observed"'


class _Span(msgspec.Struct):
    """Of which records an event tells."""

    offset: int
    last_offset: int
    cause: str


_span = msgspec.json.Decoder(_Span)


def seqs_of_operations(bus: Bus, offsets: Collection[int], after: int, through: int) -> Mapping[int, list[int]]:
    """Return by offset the seqs of the events of the operation that has this offset; a large one comes in parts."""
    found: dict[int, list[int]] = {offset: [] for offset in offsets}
    for entry in log.events(bus, after, through if found else after):
        if _KIND in entry.raw:
            span = _span.decode(entry.raw)
            if span.cause in BESIDE_THE_LOG:
                continue
            for offset in found:
                if span.offset <= offset <= span.last_offset:
                    found[offset].append(entry.seq)
    return found
