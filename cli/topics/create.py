"""Create a topic."""

import click

from cli.admin_requests import Ask, Request, asks, perform
from cli.topic_argument import topic_argument
from cli.topics.settings_check import check_readable, config_option
from cli.topics.waiting import with_brokers


def assignment_of(text: str) -> dict[str, list[int]]:
    """Read replicas as Kafka's tool takes them: ``1:2,2:3`` are two partitions. Raises ``BadParameter``."""
    try:
        return {str(number): [int(broker) for broker in one.split(":")] for number, one in enumerate(text.split(","))}
    except ValueError as error:
        message = "expected broker ids such as 1:2,2:3: a comma between partitions, a colon between replicas"
        raise click.BadParameter(message, param_hint="--replica-assignment") from error


@click.command("create")
@topic_argument
@click.option("--partitions", type=click.IntRange(min=1), metavar="N", help="Default: num.partitions.")
@click.option("--replication-factor", type=click.IntRange(min=1), metavar="N", help="Default: the cluster's setting.")
@click.option("--replica-assignment", metavar="LIST", help="The replicas of each partition, for example 1:2,2:3.")
@config_option
@click.option("--if-not-exists", is_flag=True, help="An existing topic is not an error.")
@asks
def command(
    ask: Ask,
    topic: str,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    config: dict[str, str],
    if_not_exists: bool,
) -> None:
    """Create a topic.

    If registered brokers have yet to become active, as after the start of a cluster, this waits for them, for
    --timeout-ms at most.

    \b
    Examples:
      isrflow topics create clicks --partitions 3 --replication-factor 3 --config min.insync.replicas=2
      isrflow topics create clicks --replica-assignment 1:2,2:3
      isrflow topics create clicks --partitions 1 --dry-run
    """
    request: Request = {"kind": "create_topic", "topic": topic, "config": config}
    if replica_assignment is not None:
        if partitions is not None or replication_factor is not None:
            raise click.UsageError("--replica-assignment excludes --partitions and --replication-factor")
        request["assignment"] = assignment_of(replica_assignment)
    else:
        sizes = {"partitions": partitions, "replication_factor": replication_factor}
        request |= {name: size for name, size in sizes.items() if size is not None}
    check_readable(ask.settings, config)
    factor = len(next(iter(request["assignment"].values()))) if "assignment" in request else replication_factor
    ask = with_brokers(ask, factor)
    harmless = frozenset({"TOPIC_ALREADY_EXISTS"} if if_not_exists else ())

    perform(
        ask,
        [request],
        lambda answer: f"Created topic {topic}." if answer.error == "NONE" else f"Topic {topic} exists already.",
        harmless,
    )
