"""Check whether this machine has what isrflow needs, and fetch jars."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from cli.errors import Unreachable, WrongUse
from cli.findings import Finding, bus, java, versions
from cli.options import with_settings
from cli.output import format_option, show_json
from cli.parameters import NearChoice, file_option
from conf.cache import cache_dir, cache_is_temporary
from conf.counted import counted
from conf.jars import SETS, Jar, JarsError, damaged, fetch, missing, pinned
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION
from conf.settings import Settings

_FOR = {
    **{kafka.jars: f"for brokers of Kafka {kafka.number}" for kafka in KAFKA_VERSIONS.values()},
    "kafka-tools": "for Kafka's own admin tools",
    "spark-files": "for shorter batches",
    "zookeeper-tools": f"for the admin tools of Kafka {ZOOKEEPER_KAFKA_VERSION}",
}


@click.command("doctor")
@click.argument("names", nargs=-1, type=NearChoice(SETS), metavar="[SET]...")
@click.option("--fetch", "fetching", is_flag=True, help="Fetch the missing jars of the named sets, or of all sets.")
@click.option("--prepare", "preparing", is_flag=True, help="Make engines start faster from now on.")
@file_option(
    "--broker",
    help="Compare a broker's server.properties with a gateway's settings, and check nothing else.",
)
@click.option(
    "--gateway-set",
    "gateway_sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --broker: a setting that the gateway is started with. May be repeated.",
)
@format_option
@with_settings
def command(
    settings: Settings,
    names: tuple[str, ...],
    fetching: bool,
    preparing: bool,
    broker: Path | None,
    gateway_sets: tuple[str, ...],
    form: str,
) -> None:
    """Check versions, Java, the bus, clocks and Kafka's jars. With --fetch, fetch missing jars first.

    The command reads the bus, and checks whether this user may write to it and to the checkpoint.

    With --prepare, fetch spark-files and write an archive of the classes that Spark loads. Also write one for each
    version of Kafka whose jars are there, and one for Kafka's admin tools. Each takes up to a quarter of a minute.
    Engines of this Python environment, Kafka brokers and tools then start faster.

    With --broker and --gateway-set, compare a broker's server.properties with the settings of a gateway: protocols,
    certificates, mechanisms and passwords, and whether the broker's principal is its node id (docs/security.md).

    The sets of jars are those that the command lists, pinned by hash and kept in a cache (ISRFLOW_CACHE, or the user's
    cache). The exit code is 3 if something is wrong: there is no Java, a jar does not match its hash, a clock is
    skewed, the bus cannot be read, or a place cannot be written. A bus that does not exist yet is not wrong.

    \b
    Examples:
      isrflow doctor
      isrflow doctor --format json
      isrflow doctor --fetch
      isrflow doctor --fetch kafka-broker
      isrflow doctor --prepare
    """
    if broker or gateway_sets:
        _compare(broker, gateway_sets, form)
        return
    sets = names or SETS
    for name in sets if fetching else ():
        _fetch(name)
    if preparing:
        _prepare()
    _show(list(_findings(settings, sets)), form, "something is wrong")


def _compare(broker: Path | None, gateway_sets: Sequence[str], form: str) -> None:
    # This loads the codec of Kafka's messages, which nothing else here needs.
    from cli.security_findings import broker_and_gateway

    if broker is None:
        raise WrongUse("--gateway-set needs --broker")
    findings = list(broker_and_gateway(broker, gateway_sets))
    _show(findings, form, "the broker and the gateway do not fit each other")


def _show(findings: Sequence[Finding], form: str, complaint: str) -> None:
    """Print the findings. Raises ``Unreachable`` with ``complaint`` if any of them is wrong."""
    if form == "json":
        show_json([finding._asdict() for finding in findings])
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            mark = "ok   " if finding.there else ("WRONG" if finding.is_wrong else "-    ")
            click.echo(f"{mark} {finding.name.ljust(width)}  {finding.text}")
    if wrong := [finding.name for finding in findings if finding.is_wrong]:
        raise Unreachable(f"{complaint}: {', '.join(wrong)}.")


def _tell(done: str) -> None:
    # Standard output has the findings, which programs read.
    click.echo(done, err=True)


def _fetch(name: str) -> None:
    def tell(jar: Jar) -> None:
        _tell(f"fetched {jar.coordinate}")

    try:
        fetch(name, tell)
    except JarsError as error:
        raise Unreachable(str(error)) from error


def _prepare() -> None:
    # Importing Spark takes seconds, so only --prepare does it. Without it the command needs no Spark.
    from brokers.launch.kafka.preparing import prepare, prepare_tools
    from brokers.launch.kafka.tools import ToolError
    from brokers.launch.service import ServiceError
    from streaming.class_archive import write_class_archive

    _fetch("spark-files")
    try:
        _tell(f"wrote {write_class_archive()}")
        for version, kafka in KAFKA_VERSIONS.items():
            if not missing(kafka.jars):
                _tell(f"the classes of Kafka {version} are in {prepare(version)}")
        default = KAFKA_VERSIONS[KAFKA_VERSION]
        if not missing(default.jars) and not missing(default.tools):
            _tell(f"the classes of Kafka's admin tools are in {prepare_tools()}")
    except (RuntimeError, ServiceError, ToolError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"cannot archive classes: {error}") from error


def _findings(settings: Settings, sets: Sequence[str]) -> Iterator[Finding]:
    yield from versions()
    yield from java()
    yield from bus(settings)
    yield _cache()
    for name in sets:
        yield _jars(name)


def _cache() -> Finding:
    if cache_is_temporary():
        hint = "name a folder with ISRFLOW_CACHE"
        return Finding("cache", False, False, f"{cache_dir()}, because the user's cache cannot be written: {hint}")
    return Finding("cache", True, False, str(cache_dir()))


def _jars(name: str) -> Finding:
    total, gone, wrong = len(pinned(name)), len(missing(name)), damaged(name)
    if wrong:
        names = ", ".join(jar.coordinate for jar in wrong)
        return Finding(name, False, True, f"wrong hash: {names}; run 'isrflow doctor --fetch {name}'")
    if gone:
        hint = f"run 'isrflow doctor --fetch {name}'"
        return Finding(name, False, False, f"{total - gone} of {counted(total, 'jar')}, {_FOR[name]}: {hint}")
    return Finding(name, True, False, f"{counted(total, 'jar')}, {_FOR[name]}")
