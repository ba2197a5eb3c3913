"""Events and decisions between two seqs, read page by page, so that a reader's memory does not grow with the log."""

from collections.abc import Iterator

from bus.interface import AFTER_ALL_OF, Bus, Decided, Entry
from history.reach import BeyondReachError

PAGE_EVENTS = 10_000
PAGE_DECISIONS = 10_000
PAGE_BYTES = 16 * 1024 * 1024


def event_pages(bus: Bus, after: int, through: int) -> Iterator[list[Entry]]:
    """Yield the events after ``after``, through ``through``, in order, without those that retention removed."""
    while page := bus.recorded(after, through, PAGE_EVENTS, PAGE_BYTES):
        yield page
        after = page[-1].seq


def whole_event_pages(bus: Bus, after: int, through: int) -> Iterator[list[Entry]]:
    """Yield what ``event_pages`` gives. Raise ``BeyondReachError`` if retention has removed any of the events.

    Retention goes on during the read, and a state that lacked an event would be wrong without a sign.
    """
    while after < through:
        page = bus.recorded(after, through, PAGE_EVENTS, PAGE_BYTES)
        # Asked after the read, so that it covers whatever the page lacks.
        if (kept_after := bus.kept_after()) > after:
            raise BeyondReachError(
                f"retention has removed events up to seq {kept_after} while those after seq {after} were read: "
                "the state can no longer be rebuilt from there"
            )
        if not page:
            return
        yield page
        after = page[-1].seq


def events(bus: Bus, after: int, through: int) -> Iterator[Entry]:
    """Yield what ``event_pages`` gives, one by one."""
    for page in event_pages(bus, after, through):
        yield from page


def decision_pages(bus: Bus, after: int, through: int, *, passing_over: bool = True) -> Iterator[list[Decided]]:
    """Yield the decisions on the events after ``after``, through ``through``, in order.

    Without ``passing_over``, raise ``TrimmedError`` if retention removed any of them.
    """
    place = (after, AFTER_ALL_OF)
    while page := bus.decisions(place, PAGE_DECISIONS, PAGE_BYTES, passing_over=passing_over):
        wanted = page if page[-1].seq <= through else [one for one in page if one.seq <= through]
        if wanted:
            yield wanted
        if len(wanted) < len(page):
            return
        place = (page[-1].seq, page[-1].idx)


def decisions(bus: Bus, after: int, through: int, *, passing_over: bool = True) -> Iterator[Decided]:
    """Yield what ``decision_pages`` gives, one by one."""
    for page in decision_pages(bus, after, through, passing_over=passing_over):
        yield from page
