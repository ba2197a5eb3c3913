"""Read the metadata log of a cluster from files, and explain it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec

from brokers.shadow.events import UNKNOWN_CLUSTER, encoded, events_of
from brokers.shadow.files import read_directory
from brokers.shadow.operations import Operations
from brokers.shadow.place import Place, PlaceError, opened
from bus.embedded import EmbeddedBus
from bus.interface import Entry
from bus.open_bus import open_bus
from cli.errors import WrongUse
from cli.options import bus_option, conf_option, name_client_config, set_option
from cli.output import show_json, show_lines
from cli.shadow.report_text import html_of, text_of
from conf.garbage import without_collections
from conf.loader import load
from conf.settings import Settings
from history.shadow_report import Note, ReportWriter, ShadowReport
from state.observed_events import Observed
from streaming.in_process import InProcessEngine

# What is put on the bus at once.
LOADED_BYTES = 16 * 1024 * 1024


@click.command("read")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    show_default=True,
    help="The format of the report.",
)
@click.option("--cluster-id", help="The cluster's id, if there is no meta.properties beside the log.")
@conf_option
@bus_option
@set_option
def command(
    folder: Path, form: str, cluster_id: str | None, conf: Path | None, bus: str | None, sets: tuple[str, ...]
) -> None:
    """Read what a cluster's controllers did from the metadata log of any controller or broker, and report it.

    FOLDER is a node's log directory, a folder around it, a copy of either, or a tar or zip file. It is only read. What
    was done goes on the bus, which must be new. Then all commands that show and explain can ask it: how did this
    partition get here, how was the cluster at a time, what would have been decided under other settings?

    --set names settings that the controllers have in their files, which the log does not tell.

    \b
    Examples:
      isrflow shadow read node-3.tar.xz --bus incident.db
      isrflow shadow read node-3.tar.xz --bus incident.db --format html
      isrflow shadow read node-3.tar.xz --bus incident.db --set unclean.leader.election.enable=true
    """
    settings = load(conf, sets, bus=bus, environment=os.environ, cross_check=False)
    name_client_config(settings.kafka_client_config)
    try:
        # What is read has no cycles, and the collector would walk the whole cluster again and again.
        with opened(folder) as place, without_collections():
            report = _read(place, cluster_id or place.cluster_id or UNKNOWN_CLUSTER, settings)
    except PlaceError as error:
        raise WrongUse(str(error)) from error
    if form == "json":
        show_json(msgspec.to_builtins(report))
    elif form == "html":
        click.echo(html_of(report))
    else:
        show_lines(text_of(report))


def _read(place: Place, cluster_id: str, settings: Settings) -> ShadowReport:
    bus = open_bus(settings.bus)
    try:
        if not isinstance(bus, EmbeddedBus):
            raise WrongUse(f"bus {settings.bus_name} is not a file: name a file with --bus")
        if bus.last_seq() > 0:
            raise WrongUse(f"bus {settings.bus_name} is not new: name another file with --bus")
        cut, writer = Operations(), ReportWriter(cluster_id)
        engine = InProcessEngine(bus, settings, tell=writer.take_decision)
        for chunk in _chunks(_entries(_events(place, cut, cluster_id), writer)):
            bus.load(chunk)
            engine.decide()
        writer.report.notes = [Note(note.offset, note.what) for note in cut.notes]
        return writer.finished()
    finally:
        bus.close()


def _events(place: Place, cut: Operations, cluster_id: str) -> Iterator[Observed]:
    for one in read_directory(place.directory):
        for operation in cut.take(one):
            yield from events_of(operation, cluster_id)
    for operation in cut.end():
        yield from events_of(operation, cluster_id)


def _entries(events: Iterable[Observed], writer: ReportWriter) -> Iterator[Entry]:
    """Give each event its place on the bus, and the time at which it happened."""
    entered_ms = 0
    for seq, event in enumerate(events, start=1):
        writer.take(event)
        entered_ms = max(entered_ms, event.time_ms)
        yield Entry(seq, encoded(event), entered_ms, False)


def _chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    chunk, size = list[Entry](), 0
    for entry in entries:
        chunk.append(entry)
        size += len(entry.raw)
        if size >= LOADED_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
