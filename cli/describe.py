"""Print the state."""

from collections.abc import Callable
from typing import Any

import click

from cli.brokers.rows import check_known
from cli.committed import Committed, committed
from cli.moment import at_option
from cli.options import with_settings
from cli.output import columns, format_option, ids, show_json, show_lines
from cli.partition_filters import Filters, filtered
from cli.topic_argument import topic_filter
from conf.settings import Settings

View = dict[str, Any]
_PARTITION_WORDS = (
    *("Topic", "Partition", "Leader", "Replicas", "Isr", "Adding", "Removing"),
    *("State", "LeaderEpoch", "PartitionEpoch", "HighWatermark"),
)


@click.command("describe")
@format_option
@topic_filter("Only this topic.")
@click.option("--broker", type=int, metavar="ID", help="Only this broker, and the partitions with a replica on it.")
@filtered
@at_option
@with_settings
def command(
    settings: Settings,
    form: str,
    topic: str | None,
    broker: int | None,
    filters: Filters,
    at: str | None,
) -> None:
    """Print brokers, topics and partitions as last committed, or as they were.

    \b
    Examples:
      isrflow describe --topic orders
      isrflow describe --format json --under-replicated
      isrflow describe --at 10
    """
    found = committed(settings, at)
    view = _filtered(found, topic, broker, filters)
    if form == "json":
        show_json(view)
    else:
        show_lines(table_of(view))


def _filtered(found: Committed, topic: str | None, broker: int | None, filters: Filters) -> View:
    view = found.view()
    if topic is not None:
        found.topic(topic)
    if broker is not None:
        check_known(found, broker)
    tests: list[Callable[[View], bool]] = []
    if topic is not None:
        tests.append(lambda p: p["topic"] == topic)
    if broker is not None:
        tests.append(lambda p: broker in p["replicas"])
    if any(filters):
        wanted = {(of.topic, p.partition) for of, p in filters.matches(found, list(found.topics.values()))}
        tests.append(lambda p: (p["topic"], p["partition"]) in wanted)
    if not tests:
        return view
    partitions = [p for p in view["partitions"] if all(test(p) for test in tests)]
    topics = {p["topic"] for p in partitions} | {topic}
    return view | {
        "brokers": [b for b in view["brokers"] if broker is None or b["broker"] == broker],
        "topics": [t for t in view["topics"] if t["topic"] in topics],
        "partitions": partitions,
    }


def table_of(view: View) -> list[str]:
    """Format a view in columns with the headings of Kafka's own tools. A missing leader is ``none``."""
    head = f"ControllerEpoch: {view['controller_epoch']}  Seq: {view['seq']}  TimeMs: {view['time_ms']}"
    skew_ms = view["clock_skew_ms"]
    lines = [head if skew_ms is None else f"{head}  ClockSkewMs: {skew_ms}", ""]
    lines += columns(
        ("Broker", "BrokerEpoch", "State", "Rack", "Backlog"),
        ((b["broker"], b["broker_epoch"], b["state"], b["rack"] or "-", b["backlog"]) for b in view["brokers"]),
    )
    if view["topics"]:
        lines += ["", *columns(("Topic", "TopicId", "State", "Configs"), map(_topic_row, view["topics"]))]
    if view["partitions"]:
        lines += ["", *columns(_PARTITION_WORDS, map(_partition_row, view["partitions"]))]
    return lines


def _topic_row(t: View) -> tuple[object, ...]:
    config = ",".join(f"{key}={value}" for key, value in t["config"].items())
    return (t["topic"], t["topic_id"], t["state"], config or "-")


def _partition_row(p: View) -> tuple[object, ...]:
    leader = p["leader"] if p["leader"] >= 0 else "none"
    listed = (ids(p[name]) for name in ("replicas", "isr", "adding_replicas", "removing_replicas"))
    epochs = (p["leader_epoch"], p["partition_epoch"], p["high_watermark"])
    return (p["topic"], p["partition"], leader, *listed, p["state"], *epochs)
