"""Show how far back the past on the bus reaches."""

from typing import Any

import click

from bus.interface import MAX_EVENT_BYTES, Bus
from cli.options import existing_bus, with_settings
from cli.output import format_option, show_fields, show_json
from conf.settings import Settings, history_limits
from history.explanation import shown_time
from history.reach import reach_of
from state.event_text import decode
from state.events import ControllerStarted

OF_THE_ENGINE = "settings_of_the_engine"
_THINNED = "those that changed the cluster"


@click.command("history")
@format_option
@with_settings
def command(settings: Settings, form: str) -> None:
    """Show how far back states, events and decisions reach.

    'describe --at', 'whatif' and 'events --snapshot' need a state that can be rebuilt. 'partitions explain', 'events'
    and 'decisions' reach as far back as there are decisions. The settings history.ms, history.events, retention.ms and
    retention.events of the engine say how far that is. The command shows those of the engine that claimed last.

    \b
    Examples:
      isrflow history
      isrflow history --format json
    """
    with existing_bus(settings) as bus:
        reach, snapshots, kept_after = reach_of(bus), bus.snapshots(), bus.kept_after()
        limits = _limits_of_the_engine(bus)
    shown: dict[str, Any] = {
        "states_from_seq": reach.state_from,
        "states_from_ms": reach.state_from_ms,
        "all_events_after_seq": kept_after,
        "decisions_from_seq": reach.decisions_from,
        "decided_seq": reach.decided,
        "snapshots": [{"seq": snapshot.seq, "time_ms": snapshot.time_ms} for snapshot in snapshots],
        OF_THE_ENGINE: limits,
    }
    if form == "json":
        show_json(shown)
        return
    since = "" if reach.state_from_ms is None else f", {shown_time(reach.state_from_ms)}"
    oldest = "none" if reach.decisions_from is None else reach.decisions_from
    show_fields(
        [
            ("States", f"from seq {reach.state_from}{since}, through seq {reach.decided}"),
            ("Events", f"all{f' after seq {kept_after}, and before it {_THINNED}' if kept_after else ''}"),
            ("Decisions", f"from seq {oldest}"),
            ("Snapshots", len(snapshots)),
            *((f"{name} of the engine", "unknown" if value is None else value) for name, value in limits.items()),
        ]
    )


def _limits_of_the_engine(bus: Bus) -> dict[str, int | None]:
    """Read the limits from the newest claim. A limit is None if the claim lacks it or was removed."""
    seq = bus.claim_seq()
    claims = [decode(entry.raw) for entry in bus.recorded(seq - 1, seq, 1, MAX_EVENT_BYTES)] if seq else []
    given = {
        key: value
        for one in claims
        if isinstance(one, ControllerStarted)
        for key, value in (one.settings or {}).items()
    }
    return {name: int(str(given[name])) if name in given else None for name in history_limits(Settings())}
