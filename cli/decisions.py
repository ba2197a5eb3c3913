"""Print the decision log."""

import sys
import time
from collections.abc import Iterator

import click
import msgspec

from bus.interface import Bus, Decided
from cli.options import existing_bus, with_settings
from conf.settings import Settings
from state.decisions import KIND_RANK

DECISIONS_PER_READ = 5_000
POLL_INTERVAL_S = 0.1
INDEX_MAX = 2**62


class _Selected(msgspec.Struct):
    kind: str
    topic: str | None = None


_selected = msgspec.json.Decoder(_Selected)


@click.command("decisions")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new decisions as they are written.")
@click.option("--from", "from_seq", type=click.IntRange(min=0), default=0, metavar="SEQ", help="Start with this event.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N decisions.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(list(KIND_RANK)), help="Only this kind. May be repeated."
)
@click.option("--topic", metavar="TOPIC", help="Only decisions about this topic.")
@with_settings
def command(
    settings: Settings, follow: bool, from_seq: int, limit: int | None, kinds: tuple[str, ...], topic: str | None
) -> None:
    """Print decisions as JSON lines, ordered by (seq, index).

    \b
    Examples:
      isrflow decisions --from 1 --limit 20
      isrflow decisions --follow --kind leader_and_isr --topic orders
    """
    bus = existing_bus(settings)
    left = limit if limit is not None else sys.maxsize
    try:
        for batch in _batches(bus, from_seq, follow):
            bodies = [decided.body for decided in batch if _is_wanted(decided.body, kinds, topic)][:left]
            sys.stdout.buffer.write(b"".join(body + b"\n" for body in bodies))
            sys.stdout.buffer.flush()
            left -= len(bodies)
            if not left:
                return
    finally:
        bus.close()


def _batches(bus: Bus, from_seq: int, follow: bool) -> Iterator[list[Decided]]:
    after = (from_seq - 1, INDEX_MAX)
    while True:
        batch = bus.decisions(after, DECISIONS_PER_READ)
        if batch:
            after = (batch[-1].seq, batch[-1].idx)
            yield batch
        elif follow:
            time.sleep(POLL_INTERVAL_S)
        else:
            return


def _is_wanted(body: bytes, kinds: tuple[str, ...], topic: str | None) -> bool:
    if not kinds and topic is None:
        return True
    selected = _selected.decode(body)
    return (not kinds or selected.kind in kinds) and (topic is None or selected.topic == topic)
