"""Show what one failure would cost."""

from typing import Any

import click

from cli.committed import Committed, committed
from cli.moment import at_option
from cli.options import with_settings
from cli.output import columns, format_option, ids, show_json, show_lines
from conf.counted import counted
from conf.garbage import without_collections
from conf.settings import Settings
from state.ids import NO_LEADER
from state.risk import AtRisk, Risk, risk_of

_LOSS_WORDS = ("Offline", "RefusingWrites", "LeadersMoved")
_PARTITION_WORDS = ("Topic", "Partition", "Leader", "Replicas", "Isr", "Eligible", "MinIsr", "Risks")


@click.command("risk")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Show only the N worst partitions.",
)
@at_option
@format_option
@with_settings
def command(settings: Settings, at: str | None, limit: int, form: str) -> None:
    """Show what one failure would cost now: the partitions without a spare replica, and for each broker and rack what
    its loss would take offline, make refuse writes with acks=all, and move. The worst come first.

    No unclean election is assumed. What if broker 3 dies? 'isrflow brokers fence 3 --dry-run' shows every decision that
    would follow.

    \b
    Examples:
      isrflow risk
      isrflow risk --limit 100
      isrflow risk --format json
    """
    # The state has no cycles, and the collector would walk it again and again.
    with without_collections():
        found = committed(settings, at)
        risk = risk_of(found.cluster, found.topics.values())
    if form == "json":
        show_json(document_of(found, risk, limit))
    else:
        show_lines(tables_of(found, risk, limit))


def document_of(found: Committed, risk: Risk, limit: int) -> dict[str, Any]:
    """Return the risks as JSON shows them, with the ``limit`` worst partitions."""
    return {
        "seq": found.cluster.seq,
        "time_ms": found.cluster.clock_ms,
        "counts": risk.counts,
        "brokers": [
            {"broker": broker, "state": found.cluster.brokers[broker].state.name} | loss._asdict()
            for broker, loss in risk.brokers
        ],
        "racks": [{"rack": rack} | loss._asdict() for rack, loss in risk.racks],
        "partitions": [_partition(one) for one in risk.partitions[:limit]],
        "partitions_at_risk": len(risk.partitions),
    }


def _partition(one: AtRisk) -> dict[str, Any]:
    stand = one.stand
    return {
        "topic": one.topic,
        "partition": one.partition,
        "risks": stand.risks,
        "leader": stand.leader,
        "replicas": one.replicas,
        "isr": stand.isr,
        "eligible": (*stand.eligible, *stand.elr),
        "min_isr": stand.min_isr,
    }


def tables_of(found: Committed, risk: Risk, limit: int) -> list[str]:
    """Return the risks as tables, with the ``limit`` worst partitions."""
    lines = columns(("Risk", "Partitions"), risk.counts.items())
    brokers = ((broker, found.cluster.brokers[broker].state.name, *loss) for broker, loss in risk.brokers)
    lines += ["", *columns(("LostBroker", "State", *_LOSS_WORDS), brokers)]
    if risk.racks:
        lines += ["", *columns(("LostRack", *_LOSS_WORDS), ((rack, *loss) for rack, loss in risk.racks))]
    if shown := risk.partitions[:limit]:
        lines += ["", *columns(_PARTITION_WORDS, map(_row, shown))]
    if left := len(risk.partitions) - len(shown):
        lines += ["", f"{counted(left, 'more partition')} at risk; --limit shows more."]
    return lines


def _row(one: AtRisk) -> tuple[object, ...]:
    stand = one.stand
    leader = "none" if stand.leader == NO_LEADER else stand.leader
    listed = (ids(one.replicas), ids(stand.isr), ids((*stand.eligible, *stand.elr)))
    return (one.topic, one.partition, leader, *listed, stand.min_isr, ",".join(stand.risks))
