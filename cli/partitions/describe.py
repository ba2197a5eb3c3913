"""Describe one partition."""

import click

from cli.committed import committed
from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, ids, show_fields, show_json
from cli.partitions.name import PARTITION, PartitionName
from conf.settings import Settings
from state.partition import PartitionState
from state.view import view_of


@click.command("describe")
@click.argument("names", nargs=-1, required=True, type=PARTITION, metavar="TOPIC-N...")
@at_option
@format_option
@with_settings
def command(settings: Settings, at: str | None, names: tuple[PartitionName, ...], form: str) -> None:
    """Describe partitions: what was decided about them, and what their brokers reported.

    \b
    Examples:
      isrflow partitions describe orders-0
      isrflow partitions describe orders-0 orders-1 --format json
    """
    found = committed(settings, at)
    described = []
    for name in names:
        topic, _ = name.find(found)
        described.append(view_of(found.cluster, [topic])["partitions"][name.partition])
    if form == "json":
        show_json(described)
        return
    for number, (name, shown) in enumerate(zip(names, described, strict=True)):
        topic, partition = name.find(found)
        if number:
            click.echo()
        state = shown["state"] if partition.state is PartitionState.OnlinePartition else f"{shown['state']}, no leader"
        eligible = (("Elr", partition.elr), ("LastKnownElr", partition.last_known_elr))
        show_fields(
            (
                ("Partition", name),
                ("TopicId", topic.topic_id),
                ("State", state),
                ("Leader", partition.leader if partition.leader >= 0 else "none"),
                ("LeaderEpoch", partition.leader_epoch),
                ("PartitionEpoch", partition.partition_epoch),
                ("Replicas", ids(partition.replicas)),
                ("Isr", ids(partition.isr)),
                *((name, ids(members)) for name, members in eligible if members),
                ("MinIsr", found.min_isr(topic)),
                ("Adding", ids(partition.adding_replicas)),
                ("Removing", ids(partition.removing_replicas)),
                ("LeaderRecoveryState", shown["leader_recovery_state"]),
                ("HighWatermark", partition.high_watermark),
                ("ReplicaStates", ", ".join(f"{broker}={state}" for broker, state in shown["replica_states"].items())),
                ("Behind", ids(partition.backlog)),
            )
        )
