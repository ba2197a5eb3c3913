"""Describe one broker."""

from typing import Any

import click
import msgspec

from cli.brokers.away import Away, away_of
from cli.brokers.rows import broker_of, rows_of
from cli.committed import Committed, committed, properties
from cli.moment import at_option
from cli.options import existing_bus, with_settings
from cli.output import format_option, ids, show_fields, show_json, some
from conf.settings import Settings
from sinks.web.state_times import StateTimes
from state.secrets import shown_settings


@click.command("describe")
@click.argument("broker", type=int, metavar="ID")
@at_option
@format_option
@with_settings
def command(settings: Settings, broker: int, at: str | None, form: str) -> None:
    """Describe a broker: its registration, its settings, and the partitions that it leads and holds.

    Long lists are shortened; --format json has all of them.

    \b
    Examples:
      isrflow brokers describe 1
      isrflow brokers describe 1 --format json
    """
    found = committed(settings, at)
    away: tuple[Away, ...] = ()
    if at is None:
        with existing_bus(settings) as bus:
            away = away_of(bus, found, StateTimes(), [broker_of(found, broker)])
    described = _described(found, broker) | {"away": away[0].document if away else None}
    if form == "json":
        show_json(described)
        return
    listeners = (f"{one['name']}://{one['host']}:{one['port']}" for one in described["listeners"])
    show_fields(
        (
            ("Broker", broker),
            ("BrokerEpoch", described["broker_epoch"]),
            ("Incarnation", described["incarnation"]),
            ("State", described["state"] + "".join(one.text for one in away)),
            ("Rack", described["rack"] or "-"),
            ("Kind", "KRaft" if described["is_kraft"] else "classic"),
            ("Listeners", " ".join(listeners) or "-"),
            ("LogDirs", " ".join(described["log_dirs"]) or "-"),
            *([("OfflineLogDirs", " ".join(offline))] if (offline := described.get("offline_log_dirs")) else []),
            *([("CordonedLogDirs", " ".join(cordoned))] if (cordoned := described.get("cordoned_log_dirs")) else []),
            ("Configs", properties(described["config"]) or "-"),
            ("Backlog", described["backlog"]),
            ("Leads", some(described["leads"])),
            ("OutOfSync", some(described["out_of_sync"])),
            ("Replicas", described["replicas"]),
            ("SharesPartitionsWith", ids(described["neighbours"])),
        )
    )


def _described(found: Committed, broker: int) -> dict[str, Any]:
    held = broker_of(found, broker)
    row = next(row for row in rows_of(found) if row["broker"] == broker)
    assigned = [
        (f"{topic.topic}-{partition.partition}", partition)
        for topic in found.topics.values()
        for partition in topic.partitions
        if broker in partition.replicas
    ]
    return row | {
        "listeners": [{"name": one.name, "host": one.host, "port": one.port} for one in held.listeners],
        "features": msgspec.to_builtins(held.features),
        "log_dirs": list(held.log_dirs),
        **({"offline_log_dirs": list(held.offline_log_dirs)} if held.offline_log_dirs else {}),
        **({"cordoned_log_dirs": list(held.cordoned_log_dirs)} if held.cordoned_log_dirs else {}),
        "config": shown_settings("broker", found.cluster.broker_config.get(str(broker), {})),
        "leads": [name for name, partition in assigned if partition.leader == broker],
        "out_of_sync": [name for name, partition in assigned if broker not in partition.isr],
        "neighbours": sorted({other for _, partition in assigned for other in partition.replicas} - {broker}),
    }
