"""Start one gateway: ``python -m brokers.gateways.kraft --gateway 100 --voters 100@H:P --bus URL ...``."""

import asyncio
from pathlib import Path

import click
import structlog

from brokers.gateways.kraft.following.decision_applier import SupersededError
from brokers.gateways.kraft.gateway import Gateway
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.security.settings import Security, security_of
from brokers.gateways.kraft.security.token_key import TokenKey
from brokers.gateways.kraft.settings import Identity, Settings, settings_of
from brokers.gateways.shared.metrics import SERIES
from brokers.gateways.shared.options import GATEWAY_ID, cluster_id_option, copies_option
from brokers.gateways.shared.starting import collect_rarely, opened, stopped_by_signals, voters_with
from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.process.ending import told
from brokers.process.given_settings import bus_option, metrics_protection, parsed
from brokers.process.metrics import OwnMetrics, served
from bus.interface import BusError
from conf.logs import configure
from conf.security.exposure import Protection
from state.stored.codec import CodecError


async def _serve(
    identity: Identity, settings: Settings, security: Security | None, protection: Protection, url: str
) -> None:
    bus = await opened(url, settings.bus_unreachable_max_ms)
    gateway = Gateway(identity, settings, bus, security)
    stopped_by_signals(gateway.stop)
    with served(OwnMetrics(SERIES, gateway.measures), settings.metrics_host, settings.metrics_port, protection):
        await gateway.run()


@click.command()
@click.option("--gateway", required=True, type=GATEWAY_ID, help="Its id among the voters.")
@click.option("--voters", required=True, help="As brokers have it in controller.quorum.voters: ID@HOST:PORT,...")
@cluster_id_option("The cluster id that the brokers' storage was formatted with.", required=True)
@bus_option
@click.option("--dir", "directory", required=True, type=click.Path(path_type=Path), help="Where its log lives.")
@click.option("--audit-dir", type=click.Path(path_type=Path), help="Where its audit log lives, if not in --dir.")
@click.option(
    "--listen-port",
    default=None,
    type=click.IntRange(0, 65_535),
    help="Its port, if brokers know another.",
)
@copies_option("--rebuild-from", ", from which a lost log is rebuilt; once for each broker.")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="A setting.")
def main(
    gateway: int,
    voters: str,
    cluster_id: str,
    bus: str,
    directory: Path,
    audit_dir: Path | None,
    listen_port: int | None,
    copies: tuple[Path, ...],
    given: tuple[str, ...],
) -> None:
    """Run a gateway until SIGTERM."""
    settings = parsed(given, settings_of)
    protection = metrics_protection(settings)
    try:
        security = security_of(settings)
        TokenKey(settings.delegation_token_secret_key_file)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from error
    identity = Identity(
        gateway=gateway,
        voters=voters_with(gateway, voters),
        cluster_id=cluster_id,
        directory=directory,
        audit_directory=audit_dir,
        listen_port=listen_port,
        copies=copies,
    )
    configure("auto")
    structlog.contextvars.bind_contextvars(gateway=gateway)
    collect_rarely()
    with told(
        refused=(SupersededError, StorageError, UnknownDecisionError, CodecError),
        unreachable=(BusError, OSError, TimeoutError),
    ):
        asyncio.run(_serve(identity, settings, security, protection, bus))


if __name__ == "__main__":
    main()
