"""Put events on the bus."""

from collections.abc import Iterator
from typing import BinaryIO

import click
import msgspec

from isrflow.bus.embedded import EmbeddedBus, now_ms
from isrflow.bus.interface import MAX_EVENT_BYTES, Bus
from isrflow.cli.errors import WrongUse
from isrflow.cli.options import with_settings
from isrflow.conf.settings import Settings

EVENTS_PER_TRANSACTION = 1_000
CHUNK_BYTES = 256 * 1024


class _Timed(msgspec.Struct):
    time_ms: msgspec.Raw = msgspec.Raw(b"")


_timed = msgspec.json.Decoder(_Timed)


@click.command("publish")
@click.argument("events", type=click.File("rb"), metavar="FILE|-")
@with_settings
def command(events: BinaryIO, settings: Settings) -> None:
    """Publish the events of FILE, or of standard input with -, and print the last one's seq.

    One JSON object a line. An event without time_ms gets the time of day. A line that is no event is
    published too, and answered with a `rejected` decision; an empty one is skipped. Lines from a pipe
    are published as they come.

    \b
    Examples:
      isrflow publish events.jsonl
      echo '{"kind":"create_topic","topic":"orders","partitions":3,"replication_factor":3}' | isrflow publish -
    """
    bus = EmbeddedBus(settings.bus_path)
    try:
        click.echo(publish_lines(bus, events))
    finally:
        bus.close()


def publish_lines(bus: Bus, stream: BinaryIO) -> int:
    """Publish a stream's lines as they come, and return the last seq on the bus."""
    seq, line = 0, 0
    for batch in _batches(stream):
        ready: list[bytes] = []
        for text in batch:
            line += 1
            if len(text) > MAX_EVENT_BYTES:
                seq = bus.publish(ready)
                raise WrongUse(
                    f"line {line} has more than {MAX_EVENT_BYTES} bytes, too long for an event; "
                    f"the lines before it are published, up to seq {seq}."
                )
            if text.strip():
                ready.append(with_time(text.strip()))
        seq = bus.publish(ready)
    return seq or bus.last_seq()


def _batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Cut what is there into lines, without waiting for more than there is."""
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
    """Return an event with ``time_ms`` set where it has none; its own text stays as it is."""
    try:
        if _timed.decode(text).time_ms:
            return text
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text
    head = text[:-1].rstrip()
    comma = b"" if head.endswith(b"{") else b","
    return head + comma + b'"time_ms":%d}' % now_ms()
