"""Check what this machine has of what isrflow needs, and fetch jars."""

import subprocess
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from brokers.launch.kafka.preparing import prepare
from brokers.launch.service import ServiceError
from cli.errors import Unreachable
from cli.options import existing_bus, with_settings
from conf.cache import cache_dir
from conf.jars import SETS, Jar, JarsError, damaged, fetch, missing, pinned
from conf.java import JavaError, java_home
from conf.settings import Settings
from isrflow.masking import masked

_FOR = {
    "kafka-broker": "for real Kafka brokers",
    "kafka-tools": "for Kafka's own admin tools",
    "spark-files": "for shorter batches",
}


class Finding(NamedTuple):
    """The result of one check. Nothing works without what is ``needed``."""

    name: str
    there: bool
    needed: bool
    text: str


@click.command("doctor")
@click.argument("names", nargs=-1, type=click.Choice(SETS), metavar="[SET]...")
@click.option("--fetch", "fetching", is_flag=True, help="Fetch the missing jars of the named sets, or of all sets.")
@click.option("--prepare", "preparing", is_flag=True, help="Make engines start faster from now on.")
@with_settings
def command(settings: Settings, names: tuple[str, ...], fetching: bool, preparing: bool) -> None:
    """Check for Java, the bus and Kafka's jars. With --fetch, fetch missing jars first.

    With --prepare, fetch spark-files and write archives of the classes that Spark and Kafka load, the latter if
    kafka-broker is there. This takes half a minute. Then engines of this Python environment and Kafka brokers start
    some seconds faster.

    There are three sets of jars, pinned by hash and kept in a cache (ISRFLOW_CACHE, or the user's cache): kafka-broker,
    kafka-tools and spark-files. The exit code is 3 if there is no Java, or if a jar does not match its hash.

    \b
    Examples:
      isrflow doctor
      isrflow doctor --fetch
      isrflow doctor --fetch kafka-broker
      isrflow doctor --prepare
    """
    sets = names or SETS
    for name in sets if fetching else ():
        _fetch(name)
    if preparing:
        _prepare()
    findings = list(_findings(settings, sets))
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = "ok     " if finding.there else ("MISSING" if finding.needed else "-      ")
        click.echo(f"{mark} {finding.name.ljust(width)}  {finding.text}")
    gone = [finding.name for finding in findings if finding.needed and not finding.there]
    if gone:
        raise Unreachable(f"missing or damaged: {', '.join(gone)}.")


def _fetch(name: str) -> None:
    def tell(jar: Jar) -> None:
        click.echo(f"fetched {jar.coordinate}")

    try:
        fetch(name, tell)
    except JarsError as error:
        raise Unreachable(str(error)) from error


def _prepare() -> None:
    # Importing Spark takes seconds, so only --prepare pays for it.
    from streaming.class_archive import write_class_archive

    _fetch("spark-files")
    try:
        click.echo(f"wrote {write_class_archive()}")
        if not missing("kafka-broker"):
            click.echo(f"Kafka's classes are in {prepare()}")
    except (RuntimeError, ServiceError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"cannot archive classes: {error}") from error


def _findings(settings: Settings, sets: Sequence[str]) -> Iterator[Finding]:
    try:
        yield Finding("java", True, True, str(java_home()))
    except JavaError as error:
        yield Finding("java", False, True, str(error))
    try:
        existing_bus(settings).close()
        yield Finding("bus", True, False, masked(settings.bus))
    except click.ClickException as error:
        yield Finding("bus", False, False, error.message)
    yield Finding("cache", True, False, str(cache_dir()))
    for name in sets:
        yield _jars(name)


def _jars(name: str) -> Finding:
    total, gone, wrong = len(pinned(name)), len(missing(name)), damaged(name)
    if wrong:
        names = ", ".join(jar.coordinate for jar in wrong)
        return Finding(name, False, True, f"wrong hash: {names}; run 'isrflow doctor --fetch {name}'")
    if gone:
        hint = f"run 'isrflow doctor --fetch {name}'"
        return Finding(name, False, False, f"{total - gone} of {total} jars, {_FOR[name]}: {hint}")
    return Finding(name, True, False, f"{total} jars, {_FOR[name]}")
