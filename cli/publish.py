"""Put events on the bus."""

import time
from collections.abc import Callable, Iterable
from typing import BinaryIO

import click
import msgspec

from bus.interface import Bus, NoBusError
from bus.open_bus import open_bus
from cli.closed_output import check_open
from cli.committed import refuse_shadow, why_silent
from cli.errors import Refused, Unreachable, WrongUse
from cli.event_lines import (
    NOTHING,
    FieldAdvice,
    check,
    chunks_of,
    complaint_about,
    never_published,
    refuse_binary,
    with_time,
)
from cli.options import with_settings
from cli.parameters import InputFile
from cli.progress_bar import progress_bar
from conf.counted import counted
from conf.settings import Settings
from history import log

EVENTS_PER_TRANSACTION = 1_000
POLL_INTERVAL_S = 0.02


class _Answer(msgspec.Struct):
    kind: str
    error: str = "NONE"


_answer_decoder = msgspec.json.Decoder(_Answer)


@click.command("publish")
@click.argument("events", type=InputFile(), metavar="FILE|-")
@click.option("--wait", is_flag=True, help="Wait for the answers, print them, and exit with 1 if any is a refusal.")
@click.option("--timeout-ms", type=click.IntRange(min=1), default=30_000, show_default=True, help="How long to wait.")
@click.option("--check", "checking", is_flag=True, help="Only check the lines. Nothing is published.")
@click.option("--create", is_flag=True, help="Make the bus if there is none.")
@click.option("--as-is", is_flag=True, help="Publish even lines that are not events. The engine rejects them.")
@with_settings
def command(
    events: BinaryIO, wait: bool, timeout_ms: int, checking: bool, create: bool, as_is: bool, settings: Settings
) -> None:
    """Put events on the bus, and print the seq of the last one.

    The events come from FILE, or from standard input with -. Each line is one JSON object. An event without
    time_ms gets the current time. Empty lines are skipped. All lines of a file are checked first: if one of them is
    not an event, the exit code is 2 and nothing is published. Lines from a pipe are checked and published as they
    arrive. With --as-is a line that is not an event is published too. The engine answers it with a `rejected` decision.
    Events that only the engine makes (tick, controller_started, sessions_extended, leader_imbalance) are always
    refused. A field that an event does not have is ignored, and named on standard error.

    \b
    Examples:
      isrflow publish --check events.jsonl
      isrflow publish events.jsonl
      echo '{"kind":"create_topic","topic":"orders","partitions":3,"replication_factor":3}' | isrflow publish -
    """
    check_open()
    if checking:
        checked = _check(events, "")
        click.echo(counted(checked, "event checked, and it is valid.", "events checked, all of them valid."))
        return
    count = None
    if not as_is and events.seekable():
        # A shell may have read a part of its standard input before.
        start = events.tell()
        count = _check(events, f" {NOTHING}")
        events.seek(start)
    bus = _open(settings, create)
    spans: list[range] = []
    advice = FieldAdvice()
    try:
        refuse_shadow(bus, settings.bus_name)
        with progress_bar("publishing", count) as done:

            def note(span: range) -> None:
                spans.append(span)
                done(len(span))

            # A file was looked through already.
            advise = advice.about if count is None and not as_is else None
            last = publish_lines(bus, events, note, never_published if as_is else complaint_about, advise)
        advice.end()
        click.echo(last)
        if wait and spans:
            wait_for_decisions(bus, spans[-1][-1], timeout_ms)
            _print_answers(bus, spans)
    finally:
        bus.close()


def _check(events: BinaryIO, consequence: str) -> int:
    """Return the number of events. Raises ``WrongUse``, which names the lines that are not events."""
    found = check(events)
    if found.wrong:
        more = f"\n... and {found.wrong - len(found.complaints)} more" if found.wrong > len(found.complaints) else ""
        raise WrongUse("\n".join(found.complaints) + more + f".{consequence}")
    return found.events


def _open(settings: Settings, create: bool) -> Bus:
    try:
        return open_bus(settings.bus, create=create, replication_factor=settings.kafka_topics_replication_factor)
    except NoBusError as error:
        raise Unreachable(f"{error} 'isrflow publish --create' makes a new one.") from error


def publish_lines(
    bus: Bus,
    stream: BinaryIO,
    published: Callable[[range], None],
    complaint: Callable[[bytes], str | None] = never_published,
    advise: Callable[[int, bytes], object] | None = None,
) -> int:
    """Publish a stream's lines as they arrive, and return the seq of the last event.

    If there is none, return the last seq on the bus. ``published`` gets each span of seqs. A chunk of lines is
    published only if there is no ``complaint`` about any of its lines. Raises ``WrongUse`` otherwise. ``advise`` gets
    each other line and its number.
    """
    number = last = 0
    before = NOTHING
    for lines in chunks_of(stream):
        ready: list[bytes] = []
        for line in lines:
            number += 1
            text = line.strip()
            wrong = complaint(text) if text else None
            if wrong:
                if complaint is not never_published:
                    refuse_binary(number, text, before)
                raise WrongUse(f"line {number} {wrong}. {before}")
            if text and advise:
                advise(number, text)
            if text:
                ready.append(with_time(text))
        for start in range(0, len(ready), EVENTS_PER_TRANSACTION):
            some = ready[start : start + EVENTS_PER_TRANSACTION]
            seq = last = bus.publish(some)
            published(range(seq - len(some) + 1, seq + 1))
            before = f"Earlier lines were published, up to seq {last}."
    return last or bus.last_seq()


def wait_for_decisions(bus: Bus, seq: int, timeout_ms: int) -> None:
    """Wait until the engine has decided all events up to ``seq``. Raises ``Unreachable`` after ``timeout_ms``."""
    deadline_s = time.monotonic() + timeout_ms / 1000
    while (decided := bus.decided_seq()) < seq:
        if time.monotonic() > deadline_s:
            raise Unreachable(
                f"seq {seq} was not decided within {timeout_ms} ms, and the engine is at {decided}. "
                f"The events stay published: {why_silent(bus)}"
            )
        time.sleep(POLL_INTERVAL_S)


def _print_answers(bus: Bus, spans: Iterable[range]) -> None:
    refused = 0
    for span in spans:
        for decided in log.decisions(bus, span[0] - 1, span[-1], passing_over=False):
            answer = _answer_decoder.decode(decided.body)
            if answer.kind in ("answer", "rejected"):
                click.echo(decided.body)
                refused += answer.kind == "rejected" or answer.error != "NONE"
    if refused:
        raise Refused(counted(refused, "of the events was refused.", "of the events were refused."))
