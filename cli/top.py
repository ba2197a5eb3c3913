"""Watch the cluster live."""

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import click

from bus.interface import Bus
from cli.brokers.away import away_of
from cli.brokers.rows import rows_of
from cli.committed import NO_ENGINE, age_s, read_committed, why_old
from cli.decision_line import line_of, reasoned
from cli.duration import duration
from cli.health import AT_RISK, UNKNOWN, Health, aged, judged
from cli.options import existing_bus, with_settings
from cli.output import format_option, show_json, some
from conf.settings import Settings
from sinks.web.state_times import StateTimes
from state.decisions import Answer, AnyDecision, HighWatermark, Imbalance, NoOp, ProducerIds, decode

if TYPE_CHECKING:
    from rich.console import RenderableType

LATEST = 12
# How many events the first look goes back, further if they led to little, and how many decisions one read returns.
EVENTS_BACK = (2_000, 20_000, 200_000)
DECISIONS_PER_READ = 2_000
MAX_AGE_MS = 10_000
DRAWN_PER_S = 2.0
# These change no broker and no partition, and would push out decisions that do.
_UNSEEN = (HighWatermark, NoOp, Answer, Imbalance, ProducerIds)
_STYLES = {"healthy": "bold green", "unhealthy": "bold red", "unknown": "bold yellow"}


class Screen:
    """The screen: the health, the brokers, and the newest decisions that changed something."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._bus = bus
        self._name = name
        self._state_times = StateTimes()
        self.latest: deque[AnyDecision] = deque(maxlen=LATEST)
        for back in EVENTS_BACK:
            self._after = (max(0, bus.decided_seq() - back), 0)
            self.latest.clear()
            self.look()
            if len(self.latest) == LATEST:
                break

    def look(self) -> None:
        """Read what was committed since the last look."""
        found = read_committed(self._bus, self._name)
        away = away_of(self._bus, found, self._state_times)
        self._found: Health = judged(found)._replace(away=away)
        self.brokers = rows_of(found)
        self._cluster, self._waiting_ms = found.cluster, found.waiting_ms
        is_old = found.age_s * 1000 > MAX_AGE_MS
        self._why = why_old(self._bus, found.cluster, found.waiting_ms) if is_old else NO_ENGINE
        while batch := self._bus.decisions(self._after, DECISIONS_PER_READ, passing_over=True):
            self._after = (batch[-1].seq, batch[-1].idx)
            read = (decode(one.body) for one in batch)
            self.latest += [one for one in read if not isinstance(one, _UNSEEN)]

    @property
    def _age_s(self) -> float:
        return age_s(self._cluster, self._waiting_ms)

    @property
    def health(self) -> Health:
        """The health as far as it is known now, even if the last look was long ago."""
        return aged(self._found, self._age_s, MAX_AGE_MS, lambda: self._why)

    @property
    def document(self) -> dict[str, Any]:
        """The screen as JSON shows it."""
        latest = [{"seq": one.seq, "text": line_of(one).strip()} for one in self.latest]
        return {"health": self.health.document, "brokers": self.brokers, "latest": latest}

    def draw(self) -> "RenderableType":
        """Draw the screen."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        health = self.health
        head = Text.assemble(
            ("isrflow top  ", "bold"),
            (health.status, _STYLES[health.status]),
            f"  {self._told(health)}  {self._name}",
        )
        if health.status == UNKNOWN:
            # The rest of the screen may be out of date.
            head.append(f"\n{health.reasons[0]}", "yellow")
        brokers = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("Broker", "State", "Leads", "Replicas", "InSync", "Backlog", "Away"):
            brokers.add_column(heading)
        # The reason is among the decisions below, and a narrow terminal has no room for it.
        told = {one.broker: one.short for one in health.away}
        for row in self.brokers:
            style = "" if row["state"] == "active" else "red"
            keys = ("broker", "state", "leads", "replicas", "in_sync", "backlog")
            brokers.add_row(*(str(row[key]) for key in keys), told.get(row["broker"], ""), style=style)
        risks = [
            Text(f"{name.replace('_', ' ')}: {some(health.details[name])}", "yellow")
            for name in AT_RISK
            if health.details[name]
        ]
        # The newest first, because a low terminal has no room for the last lines.
        # Copied, because the terminal is drawn in a thread of its own.
        latest = list(self.latest)
        lines = [Text(self._line(one), overflow="ellipsis", no_wrap=True) for one in reversed(latest)]
        return Group(head, Text(), brokers, Text(), *risks, Text("Latest decisions, newest first", "bold"), *lines)

    def _told(self, health: Health) -> str:
        """Return which controller's state it is, and how old that is."""
        observed = health.details.get("observed")
        if observed is None:
            return f"epoch {health.details['controller_epoch']}  last commit {health.age}"
        lag = f"  lag {observed['lag_ms']} ms" if "lag_ms" in observed else ""
        return f"observing {observed['cluster_id']}{lag}"

    def _line(self, decision: AnyDecision) -> str:
        # Both times are those of ticks.
        ago_s = self._age_s + (self._cluster.clock_ms - decision.time_ms) / 1000
        return f"{decision.seq:>6}  {duration(round(ago_s * 1000)):>7} ago  {reasoned(decision)}"


@click.command("top")
@click.option("--once", is_flag=True, help="Print once and exit. This is the default if the output is not a terminal.")
@click.option(
    "--interval-ms", type=click.IntRange(100, 3_600_000), default=1_000, show_default=True, help="How often to look."
)
@format_option
@with_settings
def command(settings: Settings, once: bool, interval_ms: int, form: str) -> None:
    """Watch the cluster live: its health, its brokers, partitions at risk, and the newest decisions. Ctrl-C ends it.

    \b
    Examples:
      isrflow top --once
      isrflow top --once --format json
    """
    from rich.console import Console
    from rich.live import Live

    with existing_bus(settings) as bus:
        screen = Screen(bus, settings.bus_name)
        if form == "json":
            show_json(screen.document)
        elif once or not sys.stdout.isatty():
            Console(highlight=False).print(screen.draw())
        else:
            # A look may wait for the bus while the times shown grow, so the screen is redrawn between looks.
            with Live(get_renderable=screen.draw, screen=True, refresh_per_second=DRAWN_PER_S):
                while True:
                    time.sleep(interval_ms / 1000)
                    screen.look()
