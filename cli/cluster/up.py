"""Start a cluster."""

import importlib
import os
from pathlib import Path
from typing import Any

import click

from brokers.launch.kafka.cluster import FILE, KafkaCluster, broker_specs, plain_specs
from brokers.launch.service import ServiceError
from brokers.voters import Voter, voters_of
from cli.closed_output import check_open
from cli.cluster.access import secure_bootstrap
from cli.cluster.certificates import Certificates
from cli.cluster.file_settings import check_not_overruled
from cli.cluster.folder import cluster_id_option, dir_option, held, open_cluster
from cli.cluster.led_cluster import GATEWAYS, GATEWAYS_MAX, BusTakenError, LedCluster
from cli.cluster.metadata_version import check_metadata_version, level_of
from cli.cluster.remembered import FILE as LED_FILE
from cli.errors import Refused, Unreachable, WrongUse
from cli.options import bus_option, conf_option, name_client_config
from cli.parameters import pairs
from conf.counted import counted
from conf.jars import fetch, missing
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION
from conf.loader import load
from state.features import METADATA_VERSIONS

BROKERS = 3
# The names of options that Python's names do not show.
_OPTIONS = {"version": "kafka", "overrides": "set"}


def _voters(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[Voter, ...]:
    try:
        return voters_of(text) if text else ()
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("up")
@click.option(
    "--kafka",
    "version",
    type=click.Choice(list(KAFKA_VERSIONS)),
    help=f"The version of Kafka. Default: {KAFKA_VERSION}.",
)
@click.option(
    "--metadata-version",
    type=click.Choice(list(METADATA_VERSIONS)),
    help="The metadata version of this release of Kafka, for a new cluster; from 4.3 on it raises the bus to level 2. "
    "Default: that of --kafka.",
)
@click.option(
    "--zookeeper",
    is_flag=True,
    help=f"With --kafka {ZOOKEEPER_KAFKA_VERSION}: a ZooKeeper server, and brokers that use it.",
)
@click.option("--brokers", type=click.IntRange(1, 32), help=f"The number of brokers. Default: {BROKERS}.")
@click.option("--gateways", type=click.IntRange(1, GATEWAYS_MAX), help=f"The number of gateways. Default: {GATEWAYS}.")
@click.option(
    "--plain", is_flag=True, help="A plain Kafka cluster without an engine. The first broker is the controller."
)
@click.option(
    "--voters", callback=_voters, metavar="ID@HOST:PORT,...", help="Start only brokers, led by these gateways."
)
@click.option(
    "--secure",
    is_flag=True,
    help="Make certificates, by which gateways and brokers know each other. ACLs count (docs/security.md).",
)
@cluster_id_option("Kafka's cluster id. Default: random.")
@click.option("--heap", metavar="SIZE", help="Each broker's Java heap, for example 512m.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="A setting for the Kafka brokers. May be repeated.",
)
@conf_option
@bus_option
@dir_option
def command(
    version: str | None, plain: bool, conf: Path | None, bus: str | None, folder: Path, **described: Any
) -> None:
    """Start a cluster, and wait until all of it runs. A stopped cluster continues where it stopped.

    A cluster has an engine, two gateways and Kafka brokers. If an engine already decides on the bus, it leads the
    cluster. Otherwise a new engine starts, with the settings of --conf. Relative paths in that file count from the
    directory in which the cluster is made, as in Kafka's own tools. Missing jars are fetched.

    \b
    Examples:
      isrflow cluster up --brokers 3 --gateways 1
      isrflow cluster up --secure
      isrflow cluster up --plain
      isrflow cluster up --kafka 4.2.2
      isrflow cluster up --kafka 3.9.2 --zookeeper
      isrflow cluster up --metadata-version 4.0
      isrflow cluster up --voters 100@127.0.0.1:9093
    """
    check_open()
    try:
        with held(folder):
            kafka = _up(folder, plain, conf, bus, version, described)
    except BusTakenError as error:
        raise Refused(f"{error}; choose another bus with --bus") from error
    except ServiceError as error:
        raise Unreachable(str(error)) from error
    except ValueError as error:
        raise WrongUse(str(error)) from error
    found = " and ".join(sorted({node.spec.kafka.number for node in kafka.nodes.values()}))
    click.echo(f"{counted(len(kafka.nodes), 'node')} of Kafka {found}, cluster {kafka.cluster_id}: {kafka.bootstrap}")
    led = LedCluster.open(kafka)
    if page := led and led.engine.page():
        click.echo(f"the live page: {page}")
    secure = secure_bootstrap(kafka.nodes.values())
    if secure:
        click.echo(f"for clients with certificates ({Certificates(kafka.folder).client_file}): {secure}")


def _up(
    folder: Path, plain: bool, conf: Path | None, bus: str | None, version: str | None, described: dict[str, Any]
) -> KafkaCluster:
    if (folder / FILE).exists():
        kafka, led = _open_existing(folder, plain, described | {"version": version})
        for set_name in sorted({node.spec.kafka.jars for node in kafka.nodes.values()}):
            fetch_missing(set_name)
    else:
        _check_version(version, plain, described)
        fetch_missing(KAFKA_VERSIONS[version or KAFKA_VERSION].jars)
        kafka, led = _create_cluster(folder, plain, conf, bus, described | {"version": version})
    if led:
        if led.zookeeper:
            _check_client()
        led.up(click.echo)
    else:
        kafka.up()
    return kafka


def _check_version(version: str | None, plain: bool, described: dict[str, Any]) -> None:
    """Refuse a version whose brokers cannot be led as described."""
    zookeeper = described["zookeeper"]
    number = version or KAFKA_VERSION
    if zookeeper and "zookeeper" not in KAFKA_VERSIONS[number].modes:
        raise WrongUse(f"--zookeeper needs --kafka {ZOOKEEPER_KAFKA_VERSION}")
    if zookeeper and (plain or described["voters"] or described["secure"] or described["metadata_version"]):
        raise WrongUse("--zookeeper excludes --plain, --voters, --secure and --metadata-version")
    if zookeeper:
        _check_client()
    if described["metadata_version"] and (plain or described["voters"]):
        raise WrongUse("--metadata-version is for a new metadata log, so it excludes --plain and --voters")
    if described["metadata_version"]:
        check_metadata_version(number, described["metadata_version"])


def _check_client() -> None:
    """Raise ``ModuleNotFoundError`` if gateways would lack the client of ZooKeeper. They say so only in their logs."""
    importlib.import_module("kazoo")


def fetch_missing(set_name: str) -> None:
    """Fetch the jars of a set that are not in the cache, and print that."""
    gone = missing(set_name)
    if gone:
        click.echo(f"fetching {counted(len(gone), 'jar')} of {set_name}, once")
        fetch(set_name)


def _open_existing(folder: Path, plain: bool, described: dict[str, Any]) -> tuple[KafkaCluster, LedCluster | None]:
    """Open the cluster in a folder. Refuse options that would describe another cluster."""
    kafka, led = open_cluster(folder)
    same = _described_by(kafka, led)
    wanted = described | {"plain": plain, "conf": _is_typed("conf"), "bus": _is_typed("bus")}
    other = sorted(
        _OPTIONS.get(name, name).replace("_", "-")
        for name, value in wanted.items()
        if value and value != same.get(name)
    )
    if other:
        raise WrongUse(
            f"{folder} already has a cluster, and keeps what it was created with: leave out "
            f"{', '.join(f'--{name}' for name in other)}, or choose another folder with --dir."
        )
    return kafka, led


def _described_by(kafka: KafkaCluster, led: LedCluster | None) -> dict[str, Any]:
    """Return options that describe a cluster as it is, so that the command that created it starts it again."""
    nodes = [node.spec for node in kafka.nodes.values()]
    same: dict[str, Any] = {"brokers": len(nodes), "version": nodes[0].kafka.number, "cluster_id": kafka.cluster_id}
    if led is None:
        return same | {"plain": "controller" in nodes[0].roles}
    return same | {
        "gateways": len(led.gateways),
        "secure": led.is_secure,
        "zookeeper": led.zookeeper is not None,
    }


def _is_typed(option: str) -> bool:
    """Check whether an option was typed. ISRFLOW_CONF serves all commands, and need not fit this one."""
    return click.get_current_context().get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


def _create_cluster(
    folder: Path, plain: bool, conf: Path | None, bus: str | None, described: dict[str, Any]
) -> tuple[KafkaCluster, LedCluster | None]:
    voters, cluster_id, gateways = described["voters"], described["cluster_id"], described["gateways"]
    of_led = gateways or described["secure"] or _is_typed("bus") or _is_typed("conf")
    if plain and (voters or of_led):
        raise WrongUse("--plain excludes --voters, --gateways, --secure, --bus and --conf")
    if voters and of_led:
        raise WrongUse(
            "--voters names gateways that run already, so it excludes --gateways, --secure, --bus and --conf"
        )
    if not plain:
        check_not_overruled(described["overrides"])
    brokers = described["brokers"] or BROKERS
    in_kraft = not described["zookeeper"]
    rest = {"overrides": described["overrides"]} | ({"heap": described["heap"]} if described["heap"] else {})
    rest |= {"version": described["version"]} if described["version"] and in_kraft else {}
    if plain or voters:
        specs = broker_specs(brokers, voters, **rest) if voters else plain_specs(brokers, **rest)
        # A leftover of a cluster that was never created completely.
        (folder / LED_FILE).unlink(missing_ok=True)
        return KafkaCluster.create(folder, specs, cluster_id), None
    settings = load(conf, bus=bus, environment=os.environ)
    name_client_config(settings.kafka_client_config)
    led = LedCluster.create(
        folder,
        settings.bus,
        brokers=brokers,
        # A gateway to brokers in ZooKeeper mode keeps no log that another one would have to rebuild.
        gateways=gateways or (GATEWAYS if in_kraft else 1),
        cluster_id=cluster_id,
        conf=conf,
        secure=described["secure"],
        zookeeper=described["zookeeper"],
        metadata_version=level_of(described["version"], described["metadata_version"]) if in_kraft else None,
        **rest,
    )
    return led.kafka, led
