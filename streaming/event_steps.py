"""A shard's events of a batch in steps, each with at most as much text as may be in memory at once."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from state.event_text import decode
from state.events import AnyEvent, Logged, Malformed, Progress
from streaming.fan_out import Routed
from streaming.spill import Spilled, texts

# Counts only spilled texts, because the others are in memory already.
STEP_BYTES_MAX = 32 * 1024 * 1024
_PROGRESS = Progress()


class Waiting(NamedTuple):
    """An event whose text is still in a file."""

    seq: int
    routed: Routed
    text: Spilled


def at_seq(routed: Routed, seq: int, event: AnyEvent | Malformed | None = None) -> Logged | Waiting:
    """Return a routed event with its final seq, decoded if its text came along."""
    if isinstance(routed.raw, Spilled):
        return Waiting(seq, routed, routed.raw)
    if routed.raw is None:
        return Logged(seq, routed.clock_ms, _PROGRESS, b"")
    return _logged(routed, seq, routed.raw, event or decode(routed.raw))


def in_steps(events: Iterable[Logged | Waiting], spill_dir: Path | None) -> Iterator[list[Logged]]:
    """Cut events into lists with at most ``STEP_BYTES_MAX`` from files, or with one longer event.

    The cut shows in no decision. There is always one list, which may be empty.
    """
    step: list[Logged | Waiting] = []
    total = 0
    for event in events:
        length = event.text.length if isinstance(event, Waiting) else 0
        if total and total + length > STEP_BYTES_MAX:
            yield _read(step, spill_dir)
            step, total = [], 0
        step.append(event)
        total += length
    yield _read(step, spill_dir)


def _read(step: list[Logged | Waiting], spill_dir: Path | None) -> list[Logged]:
    places = [event.text for event in step if isinstance(event, Waiting)]
    raws = texts(spill_dir, places) if spill_dir is not None else iter(())
    return [event if isinstance(event, Logged) else _read_one(event, next(raws)) for event in step]


def _read_one(event: Waiting, raw: bytes) -> Logged:
    return _logged(event.routed, event.seq, raw, decode(raw))


def _logged(routed: Routed, seq: int, raw: bytes, event: AnyEvent | Malformed) -> Logged:
    return Logged(seq, routed.clock_ms, event, raw, routed.entered_ms, routed.is_claim, routed.found_ms)
