"""Lay the state out in other shards and pages."""

import click

from bus.open_bus import open_bus
from cli.closed_output import check_open
from cli.errors import Refused
from cli.options import with_settings
from conf.settings import Settings


@click.command("reshard")
@with_settings
def command(settings: Settings) -> None:
    """Lay the state on the bus out in the shards and pages of the settings, while the engine is stopped.

    Brokers, topics, partitions and events stay as they are, and later decisions are the same. Brokers and
    gateways may go on running. The command claims the controller like an engine, so that no engine writes
    meanwhile: one that still runs on another machine ends with code 4. All of the state changes in one
    transaction. If the command is killed, either all of the state has its new shards and pages, or none of it.

    The checkpoint is not changed. It holds the state in its old pages, so the next engine moves it aside (to
    the same name with .aside) and starts from the state on the bus. Start that engine with the new values:
    put them into its settings file.

    \b
    Examples:
      isrflow reshard --set shards=32
      isrflow reshard --set shards=64 --set pages=128
    """
    check_open()
    # Importing Spark takes seconds, so no other command pays for it.
    from streaming.job_errors import JobError
    from streaming.reshard import reshard

    bus = open_bus(settings.bus, create=False, lock_timeout_s=settings.sqlite_lock_timeout_ms / 1_000)
    try:
        done = reshard(bus, settings)
    except JobError as error:
        raise Refused(str(error)) from error
    finally:
        bus.close()
    if done is None:
        click.echo(f"nothing to do: shards = {settings.shards} and pages = {settings.pages} fit {settings.bus_name}")
        return
    click.echo(
        f"laid out {done.topics} topics on {settings.bus_name}: "
        f"from {done.shards_before} to {settings.shards} shards, with {settings.pages} pages each"
    )
