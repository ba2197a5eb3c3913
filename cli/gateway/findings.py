"""The checks of 'isrflow doctor' for a gateway: its settings, the bus, its directories, and what it connects to."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from brokers.gateways.kraft import process as kraft
from brokers.gateways.kraft import settings as kraft_settings
from brokers.gateways.shared.gateway_settings import GatewayIdentity
from brokers.gateways.zk import settings as zookeeper_settings
from cli.findings import Finding, bus, versions, writable
from cli.gateway.file import settings_in
from cli.options import name_client_config

TIMEOUT_S = 2.0


def of_gateway(file: Path, url: str | None, sets: Sequence[str]) -> Iterator[Finding]:
    """Check what a gateway needs. Raises ``SettingsError`` if it would not start with these settings."""
    settings = settings_in(file, url, sets)
    name_client_config(settings.kafka_client_config)
    identity: GatewayIdentity
    places = {}
    if isinstance(settings, kraft_settings.Settings):
        identity = kraft.checked(settings).identity
        places["metadata log"] = identity.directory
        places["audit log"] = identity.audit_directory or identity.directory
        told = f"with {settings.security_protocol}"
    else:
        # Loads the client of ZooKeeper, which is an extra.
        from brokers.gateways.zk import process as zookeeper

        identity = zookeeper.checked(settings).identity
        told = f"for the brokers of ZooKeeper {identity.zookeeper}"
    host, port = identity.place
    yield Finding("gateway", True, True, f"{settings.node_id}, listens at {host}:{port} {told}")
    yield from versions()
    yield from bus(settings.bus, needed=True)
    yield from writable(places)
    for voter in identity.voters:
        if voter != identity.here:
            yield _reached(f"voter {voter.voter}", voter.host, voter.port, needed=False)
    if isinstance(identity, zookeeper_settings.Identity):
        for place in identity.zookeeper.partition("/")[0].split(","):
            host, _, text = place.strip().rpartition(":")
            yield _reached("zookeeper", host.strip("[]"), int(text) if text.isdecimal() else -1, needed=True)


def _reached(name: str, host: str, port: int, *, needed: bool) -> Finding:
    """Check whether anything listens at a place. Another voter need not run yet."""
    try:
        socket.create_connection((host, port), TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        return Finding(name, False, needed, f"{host}:{port} cannot be reached: {error}")
    return Finding(name, True, needed, f"{host}:{port} can be reached")
