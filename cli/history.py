"""Show how far back the past on the bus reaches."""

from typing import Any

import click

from cli.options import existing_bus, with_settings
from cli.output import format_option, show_fields, show_json
from conf.settings import Settings
from history.explanation import shown_time
from history.reach import reach_of

SETTINGS_HERE = "settings_of_this_command"
_THINNED = "those that changed the cluster"


@click.command("history")
@format_option
@with_settings
def command(settings: Settings, form: str) -> None:
    """Show how far back states, events and decisions reach.

    'describe --at', 'whatif' and 'events --snapshot' need a state that can be rebuilt. 'partitions explain', 'events'
    and 'decisions' reach as far back as there are decisions. The settings history.ms, history.events, retention.ms and
    retention.events of the engine say how far that is. They are not on the bus. The command shows its own
    settings, which are the engine's if both have the same --conf, --set and environment.

    \b
    Examples:
      isrflow history
      isrflow history --format json
    """
    bus = existing_bus(settings)
    try:
        reach, snapshots, kept_after = reach_of(bus), bus.snapshots(), bus.kept_after()
    finally:
        bus.close()
    shown: dict[str, Any] = {
        "states_from_seq": reach.state_from,
        "states_from_ms": reach.state_from_ms,
        "all_events_after_seq": kept_after,
        "decisions_from_seq": reach.decisions_from,
        "decided_seq": reach.decided,
        "snapshots": [{"seq": snapshot.seq, "time_ms": snapshot.time_ms} for snapshot in snapshots],
        SETTINGS_HERE: {
            "history.ms": settings.history_ms,
            "history.events": settings.history_events,
            "history.snapshot.interval.ms": settings.history_snapshot_interval_ms,
            "retention.ms": settings.retention_ms,
            "retention.events": settings.retention_events,
        },
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
            *((f"{name} of this command", value) for name, value in shown[SETTINGS_HERE].items()),
        ]
    )
