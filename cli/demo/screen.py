"""Show a story: as a live view on a terminal, as plain lines elsewhere."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.decision_line import line_of
from cli.demo.cluster import BROKERS
from cli.demo.story import TOPIC, Story, is_whole
from cli.demo.watch import Watch

if TYPE_CHECKING:
    from rich.console import RenderableType

REFRESH_PER_SECOND = 8


@contextlib.contextmanager
def plain(story: Story, watch: Watch) -> Iterator[None]:
    """Print one line for each finished step and for each decision."""

    def say(text: str) -> None:
        click.echo(f"{time.monotonic() - story.began_s:5.1f} s  {text}")

    story.on_step = lambda step, outcome: say(f"{step + 1}/{len(story.steps)} {story.steps[step]}: {outcome}")
    watch.on_decision = lambda decision: say(f"    decision {line_of(decision)}")
    yield


@contextlib.contextmanager
def live(story: Story, watch: Watch) -> Iterator[None]:
    """Redraw one screen while the story runs."""
    from rich.live import Live

    with Live(get_renderable=lambda: draw(story, watch), refresh_per_second=REFRESH_PER_SECOND, transient=False):
        yield


def draw(story: Story, watch: Watch) -> "RenderableType":
    """Draw the current screen."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    steps = Table.grid(padding=(0, 2))
    for number, step in enumerate(story.steps):
        over = number < len(story.done)
        mark = "✓" if over else "…" if number == len(story.done) else " "
        style = "green" if over else "bold" if mark == "…" else "dim"
        steps.add_row(Text(mark, style), Text(step, style), Text(story.done[number] if over else "", "cyan"))

    brokers = Text("  ")
    for broker in BROKERS:
        state = watch.brokers.get(broker, "starting")
        brokers.append(f"broker {broker} ").append(f"{state}   ", "green" if state == "active" else "red")
    acked = story.writer.acked_count if story.writer else 0
    brokers.append(f"acknowledged {acked}")

    # Real brokers compute their high watermarks themselves.
    shown = ("HighWatermark",) if story.shows_high_watermarks else ()
    partitions = Table("Topic", "Partition", "Leader", "LeaderEpoch", "Replicas", "Isr", *shown, box=None)
    for number, partition in sorted(watch.partitions.copy().items()):
        isr = Text(",".join(map(str, partition.isr)), "green" if is_whole(partition) else "yellow")
        leader = str(partition.leader) if partition.leader >= 0 else "none"
        replicas = ",".join(map(str, partition.replicas))
        more = (str(partition.high_watermark),) if shown else ()
        partitions.add_row(TOPIC, str(number), leader, str(partition.leader_epoch), replicas, isr, *more)
    decisions = Text("\n".join(line_of(decision) for decision in list(watch.latest)))
    elapsed = f"isrflow demo  {time.monotonic() - story.began_s:.0f} s"
    return Group(Panel(steps, title=elapsed), brokers, partitions, Panel(decisions, title="latest decisions"))
