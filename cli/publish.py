"""Put events on the bus."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import click
import msgspec

from bus.clock import now_ms
from bus.engine_only import engine_kind_of
from bus.interface import MAX_EVENT_BYTES, Bus
from bus.open_bus import open_bus
from cli.decisions import DECISIONS_PER_READ, INDEX_MAX
from cli.errors import Refused, Unreachable, WrongUse
from cli.options import with_settings
from conf.settings import Settings

EVENTS_PER_TRANSACTION = 1_000
CHUNK_BYTES = 256 * 1024
POLL_INTERVAL_S = 0.02


class _Answer(msgspec.Struct):
    kind: str
    error: str = "NONE"


class _Timed(msgspec.Struct):
    time_ms: msgspec.Raw = msgspec.Raw(b"")


_answer_decoder = msgspec.json.Decoder(_Answer)
_timed = msgspec.json.Decoder(_Timed)


@click.command("publish")
@click.argument("events", type=click.File("rb"), metavar="FILE|-")
@click.option("--wait", is_flag=True, help="Wait for the answers, print them, and exit with 1 if any is a refusal.")
@click.option("--timeout-ms", type=click.IntRange(min=1), default=30_000, show_default=True, help="How long to wait.")
@with_settings
def command(events: BinaryIO, wait: bool, timeout_ms: int, settings: Settings) -> None:
    """Put events on the bus, and print the seq of the last one.

    The events come from FILE, or from standard input with -. Each line is one JSON object. An event without
    time_ms gets the current time. A line that is not an event is published too, and the engine answers with a
    `rejected` decision. Empty lines are skipped. Lines from a pipe are published as they arrive. Events that
    only the engine makes (tick, controller_started, sessions_extended, leader_imbalance) are refused.

    \b
    Examples:
      isrflow publish events.jsonl
      echo '{"kind":"create_topic","topic":"orders","partitions":3,"replication_factor":3}' | isrflow publish -
    """
    bus = open_bus(settings.bus, replication_factor=settings.kafka_topics_replication_factor)
    spans: list[range] = []
    try:
        click.echo(publish_lines(bus, events, spans.append))
        if wait and spans:
            wait_for_decisions(bus, spans[-1][-1], timeout_ms)
            _print_answers(bus, spans)
    finally:
        bus.close()


def publish_lines(bus: Bus, stream: BinaryIO, published: Callable[[range], None]) -> int:
    """Publish a stream's lines as they arrive, and return the seq of the last event that has one.

    If none has one, return the last seq on the bus. ``published`` gets each span of seqs.
    """
    line = last = 0
    for batch in _batches(stream):
        ready: list[bytes] = []
        wrong = None
        for text in batch:
            line += 1
            wrong = _wrong_with(text)
            if wrong:
                break
            if text.strip():
                ready.append(with_time(text.strip()))
        seq = bus.publish(ready)
        if count := bus.count_sequenced(ready):
            last = seq
            published(range(seq - (count - 1) * bus.seq_step, seq + 1))
        if wrong:
            raise WrongUse(f"line {line} {wrong}. The lines before it were published, up to seq {seq}.")
    return last or bus.last_seq()


def _wrong_with(text: bytes) -> str | None:
    """Say why a line cannot be published at all, or return None."""
    if len(text) > MAX_EVENT_BYTES:
        return f"has more than {MAX_EVENT_BYTES} bytes, too long for an event"
    kind = engine_kind_of(text)
    return None if kind is None else f"is a {kind}, which only the engine makes"


def wait_for_decisions(bus: Bus, seq: int, timeout_ms: int) -> None:
    """Wait until the engine has decided all events up to ``seq``. Raises ``Unreachable`` after ``timeout_ms``."""
    deadline_s = time.monotonic() + timeout_ms / 1000
    while (decided := bus.decided_seq()) < seq:
        if time.monotonic() > deadline_s:
            raise Unreachable(
                f"seq {seq} was not decided within {timeout_ms} ms, the engine is at {decided}: "
                "is 'isrflow run' running on this bus? The events stay published."
            )
        time.sleep(POLL_INTERVAL_S)


def _print_answers(bus: Bus, spans: Iterable[range]) -> None:
    refused = 0
    for span in spans:
        after = (span[0] - 1, INDEX_MAX)
        while batch := [d for d in bus.decisions(after, DECISIONS_PER_READ) if d.seq in span]:
            after = (batch[-1].seq, batch[-1].idx)
            for decided in batch:
                answer = _answer_decoder.decode(decided.body)
                if answer.kind in ("answer", "rejected"):
                    click.echo(decided.body)
                    refused += answer.kind == "rejected" or answer.error != "NONE"
    if refused:
        raise Refused(f"{refused} of the events were refused.")


def _batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Split the available input into lines, without waiting for more."""
    read = getattr(stream, "read1", stream.read)
    rest = b""
    while chunk := read(CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_EVENT_BYTES:
            lines, rest = [*lines, rest], b""
        for start in range(0, len(lines), EVENTS_PER_TRANSACTION):
            yield lines[start : start + EVENTS_PER_TRANSACTION]
    if rest:
        yield [rest]


def with_time(text: bytes) -> bytes:
    """Add ``time_ms`` to an event that lacks it. The rest of its text is unchanged."""
    try:
        if _timed.decode(text).time_ms:
            return text
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text
    head = text[:-1].rstrip()
    comma = b"" if head.endswith(b"{") else b","
    return head + comma + b'"time_ms":%d}' % now_ms()
