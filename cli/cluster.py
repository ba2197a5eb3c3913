"""Start and stop brokers of real Kafka on this machine."""

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from isrflow.brokers.kafka.cluster import FILE, KafkaCluster, broker_specs, plain_specs
from isrflow.brokers.kafka.node import KafkaError
from isrflow.brokers.service import ServiceError
from isrflow.brokers.voters import Voter, voters_of
from isrflow.cli.errors import Refused, Unreachable, WrongUse
from isrflow.conf.jars import KAFKA_VERSION

BROKERS = 3

_dir_option = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data/kafka"),
    show_default=True,
    help="Where the cluster's files are.",
)


@click.group("cluster")
def command() -> None:
    """Start and stop brokers of real Kafka on this machine, each a process of its own.

    They listen on loopback alone, and run on until they are stopped. Their jars come from 'isrflow doctor --fetch'.

    \b
    Examples:
      isrflow cluster up --brokers 3
      isrflow cluster status
      isrflow cluster down --delete
    """


def _voters(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> list[Voter]:
    try:
        return [voter for text in texts for voter in voters_of(text)]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _settings(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.split("=", 1) for text in texts]
    if any(len(pair) != 2 for pair in pairs):
        raise click.BadParameter("expected key=value")
    return {pair[0]: pair[1] for pair in pairs}


@command.command("up")
@click.option("--kafka", "version", type=click.Choice([KAFKA_VERSION]), default=KAFKA_VERSION, help="Which Kafka.")
@click.option("--brokers", type=click.IntRange(1, 32), help=f"How many brokers; {BROKERS} if not said.")
@click.option("--voters", multiple=True, callback=_voters, metavar="ID@HOST:PORT", help="The controllers they ask.")
@click.option("--cluster-id", metavar="ID", help="Kafka's cluster id; drawn if not said.")
@click.option("--heap", metavar="SIZE", help="Each one's Java heap, such as 512m.")
@click.option(
    "--set", "overrides", multiple=True, callback=_settings, metavar="KEY=VALUE", help="A setting of Kafka's."
)
@_dir_option
def up(
    version: str,
    brokers: int | None,
    voters: list[Voter],
    cluster_id: str | None,
    heap: str | None,
    overrides: dict[str, str],
    folder: Path,
) -> None:
    """Start a cluster, and wait until all of it runs; one that is stopped goes on where it was.

    Without --voters it is a plain Kafka cluster, whose first broker is the controller too.

    \b
    Examples:
      isrflow cluster up --brokers 3
      isrflow cluster up --voters 100@127.0.0.1:9093
    """
    try:
        if (folder / FILE).exists():
            if brokers or voters or cluster_id or heap or overrides:
                raise WrongUse(
                    f"{folder} has a cluster already: start it as it is, or 'isrflow cluster down --delete'."
                )
            cluster = KafkaCluster.open(folder)
        else:
            rest = {"overrides": overrides} | ({"heap": heap} if heap else {})
            count = brokers or BROKERS
            specs = broker_specs(count, voters, **rest) if voters else plain_specs(count, **rest)
            cluster = KafkaCluster.create(folder, specs, cluster_id)
        cluster.up()
    except ServiceError as error:
        raise Unreachable(str(error)) from error
    except ValueError as error:
        raise WrongUse(str(error)) from error
    click.echo(f"{len(cluster.nodes)} nodes of Kafka {version}, cluster {cluster.cluster_id}: {cluster.bootstrap}")


@command.command("down")
@click.option("--delete", is_flag=True, help="Remove the cluster's data and logs too.")
@_dir_option
def down(delete: bool, folder: Path) -> None:
    """Stop all nodes in order; one that does not stop in a minute is killed.

    \b
    Examples:
      isrflow cluster down
      isrflow cluster down --delete
    """
    try:
        cluster = KafkaCluster.open(folder)
        killed = cluster.down()
        if delete:
            cluster.delete()
    except KafkaError as error:
        raise Unreachable(str(error)) from error
    if killed:
        raise Refused(f"did not stop by themselves, and were killed: {', '.join(map(str, killed))}")


@command.command("status")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="How to print it.")
@_dir_option
def status(form: str, folder: Path) -> None:
    """Say of each node whether its process runs, and where its log is. Exit code 3 when one does not.

    \b
    Examples:
      isrflow cluster status
      isrflow cluster status --format json
    """
    try:
        cluster = KafkaCluster.open(folder)
    except KafkaError as error:
        raise Unreachable(str(error)) from error
    rows = [
        {
            "node": node.spec.node_id,
            "roles": list(node.spec.roles),
            "state": node.state,
            "pid": node.pid,
            "port": node.spec.port,
            "log": str(node.log),
        }
        for node in cluster.nodes.values()
    ]
    if form == "json":
        click.echo(msgspec.json.encode({"cluster_id": cluster.cluster_id, "nodes": rows}))
    else:
        click.echo(f"Cluster: {cluster.cluster_id}  Bootstrap: {cluster.bootstrap}")
        for row, node in zip(rows, cluster.nodes.values(), strict=True):
            click.echo(
                f"{node.name:<22} {row['state']:<8} pid={row['pid'] or '-'} port={row['port'] or '-'} {row['log']}"
            )
    stopped = [str(row["node"]) for row in rows if row["state"] != "running"]
    if stopped:
        raise Unreachable(f"not running: {', '.join(stopped)}")
