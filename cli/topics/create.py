"""Create topics."""

from typing import BinaryIO

import click

from cli.admin_requests import Ask, Request, asks, check_all, perform
from cli.parameters import InputFile
from cli.topic_argument import topic_filter
from cli.topics.kafka_topic_file import read_kafka_topics
from cli.topics.settings_check import check_readable, config_option
from cli.topics.waiting import with_brokers
from state.decisions import Answer


def assignment_of(text: str) -> dict[str, list[int]]:
    """Read replicas as Kafka's tool takes them: ``1:2,2:3`` are two partitions. Raises ``BadParameter``."""
    try:
        return {str(number): [int(broker) for broker in one.split(":")] for number, one in enumerate(text.split(","))}
    except ValueError as error:
        message = "expected broker ids such as 1:2,2:3: a comma between partitions, a colon between replicas"
        raise click.BadParameter(message, param_hint="--replica-assignment") from error


@click.command("create")
@topic_filter("The same as the argument TOPIC.")
@click.option(
    "--file",
    "-f",
    type=InputFile(),
    metavar="FILE|-",
    help="Create what Strimzi's KafkaTopic resources in this file describe, as YAML or JSON.",
)
@click.option("--partitions", type=click.IntRange(min=1), metavar="N", help="Default: num.partitions.")
@click.option("--replication-factor", type=click.IntRange(min=1), metavar="N", help="Default: the cluster's setting.")
@click.option("--replica-assignment", metavar="LIST", help="The replicas of each partition, for example 1:2,2:3.")
@config_option
@click.option("--if-not-exists", is_flag=True, help="An existing topic is not an error.")
@asks
def command(
    ask: Ask,
    topic: str | None,
    file: BinaryIO | None,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    config: dict[str, str],
    if_not_exists: bool,
) -> None:
    """Create a topic, or the topics that a file describes: all of them, or none if any would be refused.

    If registered brokers have yet to become active, as after the start of a cluster, this waits for them, for
    --timeout-ms at most.

    \b
    Examples:
      isrflow topics create clicks --partitions 3 --replication-factor 3 --config min.insync.replicas=2
      isrflow topics create clicks --replica-assignment 1:2,2:3
      isrflow topics create -f topics.yaml --dry-run
    """
    if (topic is None) == (file is None):
        raise click.UsageError("name exactly one of TOPIC and --file")
    described = (partitions, replication_factor, replica_assignment)
    if file is not None:
        if config or any(one is not None for one in described):
            raise click.UsageError("--file describes the topics, so it excludes all other options about them")
        requests = read_kafka_topics(file)
    else:
        sizes = {"partitions": partitions, "replication_factor": replication_factor}
        requests = [_request(topic or "", sizes, replica_assignment, config)]
    for request in requests:
        check_readable(ask.settings, request["config"])
    ask = with_brokers(ask, max(filter(None, map(_factor, requests)), default=None))
    harmless = frozenset({"TOPIC_ALREADY_EXISTS"} if if_not_exists else ())
    if len(requests) > 1:
        check_all(ask, requests, harmless=harmless)
    perform(ask, requests, _told, harmless)


def _request(
    topic: str, sizes: dict[str, int | None], replica_assignment: str | None, config: dict[str, str]
) -> Request:
    request: Request = {"kind": "create_topic", "topic": topic, "config": config}
    given = {name: size for name, size in sizes.items() if size is not None}
    if replica_assignment is None:
        return request | given
    if given:
        raise click.UsageError("--replica-assignment excludes --partitions and --replication-factor")
    return request | {"assignment": assignment_of(replica_assignment)}


def _factor(request: Request) -> int | None:
    if "assignment" in request:
        return len(next(iter(request["assignment"].values())))
    factor: int | None = request.get("replication_factor")
    return factor


def _told(answer: Answer) -> str:
    return f"Created topic {answer.topic}." if answer.error == "NONE" else f"Topic {answer.topic} exists already."
