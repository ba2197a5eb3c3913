"""Print the event log."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from bus.interface import Bus, Entry
from cli.closed_output import check_reader
from cli.errors import WrongUse
from cli.event_lines import KINDS
from cli.log_filters import POLL_INTERVAL_S, TAIL_MAX, Wanted, last_of, print_pages
from cli.moment import check_span, seq_named
from cli.options import existing_bus, with_settings
from cli.output import printable, text_option, write_lines
from cli.parameters import NearChoice, file_option
from cli.topic_argument import topic_filter
from cli.topic_hints import hint_at
from conf.settings import Settings
from history.envelope import enveloped
from history.explanation import shown_time
from history.log import event_pages, whole_event_pages
from history.moment import first_seq_since, last_seq_until
from history.told_events import told_event

NEWEST = 2**62


@click.command("events")
@click.option("--from", "start", metavar="SEQ|TIME", help="Start with this event, or with those since a time.")
@click.option("--to", "end", metavar="SEQ|TIME", help="Stop after this event, or after those until a time.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new events as they come.")
@click.option("--tail", type=click.IntRange(min=1, max=TAIL_MAX), metavar="N", help="Start with the last N events.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N events.")
@click.option("--kind", "kinds", multiple=True, type=NearChoice(KINDS), help="Only this kind. May be repeated.")
@topic_filter("Only events about this topic.")
@text_option("Envelopes that 'isrflow replay' reads, or sentences.")
@file_option(
    "--snapshot",
    help="Write the state before the first event, for 'isrflow replay --from-snapshot FILE'.",
)
@with_settings
def command(
    settings: Settings,
    start: str | None,
    end: str | None,
    follow: bool,
    tail: int | None,
    limit: int | None,
    kinds: tuple[str, ...],
    topic: str | None,
    form: str,
    snapshot: Path | None,
) -> None:
    """Print the events on the bus in their order, each with the exact bytes that were published.

    A line of JSON is an envelope: the event, its seq, and what the bus knows about it. The replay of all of them
    leads to the same decisions, byte for byte. Where retention has removed events, a replay starts from a snapshot.
    If retention overtakes the command, it ends with an error.

    \b
    Examples:
      isrflow events --from 1 --limit 20 --format text
      isrflow events --tail 10 --format text
      isrflow events --topic orders --kind create_topic
      isrflow events | isrflow replay - --out decisions.jsonl
      isrflow events --from 3 --snapshot before.json --limit 100
      isrflow events --follow --from 2s
    """
    if tail is not None and snapshot is not None:
        raise WrongUse("--snapshot needs an event to start with: give --from in place of --tail.")
    with existing_bus(settings) as bus:
        after = 0 if start is None else seq_named(bus, "--from", start, first_seq_since) - 1
        through = NEWEST if end is None else seq_named(bus, "--to", end, last_seq_until)
        if end is not None:
            check_span(start, end, max(0, after), through)
        if snapshot is not None:
            _write_snapshot(bus, snapshot, max(0, after))
        if follow and topic is not None:
            # Nothing may ever come.
            hint_at(settings, topic)
        takes = Wanted(kinds, topic).takes
        if tail is None:
            pages = _pages(bus, max(0, after), through, follow)
        else:
            pages = _tail(bus, max(0, after), through, follow, tail, takes)
        wanted = ([entry for entry in page if takes(entry.raw)] for page in pages)
        if not print_pages(wanted, limit, lambda entries: _show(entries, form)) and topic is not None:
            hint_at(settings, topic)


def _tail(
    bus: Bus, after: int, through: int, follow: bool, count: int, takes: Callable[[bytes], bool]
) -> Iterator[list[Entry]]:
    """Give the last events that are wanted, and with ``follow`` all later ones."""

    def between(start: int, end: int) -> Iterator[Entry]:
        return (entry for page in event_pages(bus, start, end) for entry in page if takes(entry.raw))

    newest = min(through, bus.last_seq())
    found = last_of(bus, between, after, newest, count)
    kept_after = bus.kept_after()
    if after < kept_after and (len(found) < count or found[0].seq <= kept_after):
        _say_what_is_gone(kept_after)
    yield found
    if follow and newest < through:
        yield from _pages(bus, newest, through, follow)


def _pages(bus: Bus, after: int, through: int, follow: bool) -> Iterator[list[Entry]]:
    """Give the events after ``after``. Raise ``BeyondReachError`` if retention removes one that was about to come."""
    while after < min(through, kept_after := bus.kept_after()):
        _say_what_is_gone(kept_after)
        last = min(through, kept_after)
        yield from event_pages(bus, after, last)
        after = last
    while True:
        for page in whole_event_pages(bus, after, through):
            after = page[-1].seq
            yield page
        if not follow or after >= through:
            return
        check_reader()
        time.sleep(POLL_INTERVAL_S)


def _say_what_is_gone(kept_after: int) -> None:
    click.echo(
        f"Retention has removed events up to seq {kept_after}; of those only the ones that changed the "
        "cluster are left, and no replay can start there (history.ms, history.events).",
        err=True,
    )


def _write_snapshot(bus: Bus, path: Path, seq: int) -> None:
    # Only a snapshot needs the rules, and they take a while to import.
    from history.snapshot_file import encode_snapshot
    from history.state_at import state_at

    text = encode_snapshot(state_at(bus, seq))
    try:
        path.write_bytes(text)
    except OSError as error:
        raise WrongUse(f"cannot write {path}: {error.strerror}") from error


def _show(entries: list[Entry], form: str) -> None:
    lines = (enveloped(entry) if form == "json" else _text_of(entry).encode() for entry in entries)
    write_lines(lines)


def _text_of(entry: Entry) -> str:
    when = "-" if entry.entered_ms is None else shown_time(entry.entered_ms)
    return f"{entry.seq:>6}  {when}  {printable(told_event(entry.raw))}"
