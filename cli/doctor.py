"""Check whether this machine has what isrflow needs, and fetch jars."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from cli.errors import Unreachable, WrongUse
from cli.findings import Finding, bus, java, places_of_engine, versions
from cli.options import bus_option, conf_option, name_client_config, set_option
from cli.output import format_option, show_json
from cli.parameters import NearChoice, file_option
from conf.cache import cache_dir, cache_is_temporary
from conf.counted import counted
from conf.jars import SETS, Jar, JarsError, damaged, fetch, missing, pinned
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION
from conf.loader import load
from conf.properties_file import SUFFIX
from conf.settings import Settings

_FOR = {
    **{kafka.jars: f"for brokers of Kafka {kafka.number}" for kafka in KAFKA_VERSIONS.values()},
    "kafka-tools": "for Kafka's own admin tools",
    "spark-files": "for shorter batches",
    "zookeeper-tools": f"for the admin tools of Kafka {ZOOKEEPER_KAFKA_VERSION}",
}


class _SetOrFile(NearChoice):
    """The name of a set of jars, or a gateway's settings file, also a controller's ``server.properties``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return Path(value) if str(value).endswith((".toml", SUFFIX)) else super().convert(value, param, ctx)


@click.command("doctor")
@click.argument("named", nargs=-1, type=_SetOrFile(SETS), metavar="[GATEWAY.toml | server.properties | SET...]")
@click.option("--fetch", "fetching", is_flag=True, help="Fetch the missing jars of the named sets, or of all sets.")
@click.option("--prepare", "preparing", is_flag=True, help="Make engines start faster from now on.")
@file_option(
    "--broker",
    help="Compare a broker's server.properties with a gateway's settings, and check nothing else.",
)
@format_option
@conf_option
@bus_option
@set_option
def command(
    named: tuple[str | Path, ...], fetching: bool, preparing: bool, broker: Path | None, form: str, **given: Any
) -> None:
    """Check versions, Java, the bus, clocks and Kafka's jars. With --fetch, fetch missing jars first.

    The command reads the bus, and checks whether this user may write to it and to the checkpoint.

    With --prepare, fetch spark-files and write an archive of the classes that Spark loads. Also write one for each
    version of Kafka whose jars are there, and one for Kafka's admin tools. Each takes up to a quarter of a minute.
    Engines of this Python environment, Kafka brokers and tools then start faster.

    With the file of a gateway, which may be a controller's server.properties, check its settings and the files that
    they name, the bus, its directories and the other voters. The environment and --set override the file, as for the
    gateway. With --broker too, compare a broker's server.properties with these settings: protocols, certificates,
    mechanisms and passwords, and whether the broker's principal is its node id (docs/security.md).

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
      isrflow doctor gateway.toml
      isrflow doctor gateway.toml --broker server.properties
    """
    files, names = [one for one in named if isinstance(one, Path)], [one for one in named if isinstance(one, str)]
    if files or broker:
        if len(files) > 1 or names or fetching or preparing:
            raise WrongUse("a gateway's file goes with --broker, --bus, --set and --format alone")
        _of_gateway(files[0] if files else None, broker, given["bus"], given["sets"], form)
        return
    settings = load(given["conf"], given["sets"], bus=given["bus"], environment=os.environ)
    name_client_config(settings.kafka_client_config)
    wanted = names or SETS
    for name in wanted if fetching else ():
        _fetch(name)
    if preparing:
        _prepare()
    _show(list(_findings(settings, wanted)), form, "something is wrong")


def _of_gateway(file: Path | None, broker: Path | None, bus: str | None, sets: Sequence[str], form: str) -> None:
    # These load the codec of Kafka's messages, which nothing else here needs.
    from cli.gateway.findings import of_gateway
    from cli.security_findings import broker_and_gateway

    if broker is None:
        assert file is not None
        _show(list(of_gateway(file, bus, sets)), form, "something is wrong")
    else:
        findings = list(broker_and_gateway(broker, file, sets))
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
    yield from bus(settings.bus, needed=False)
    yield from places_of_engine(settings)
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
