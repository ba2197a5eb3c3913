"""The certificates of a cluster on this machine, and the settings of gateways and brokers that go with them."""

import secrets
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from brokers.gateways.kraft.settings import DEFAULT_RULES
from brokers.launch.kafka.java_properties import properties_text
from brokers.launch.kafka.properties import CONTROLLER_LISTENER, LISTENER, LOOPBACK, NodeSpec

FOLDER = "security"
# The common name alone is the principal, such as User:broker-1.
_ENGINE, CLIENT = "engine", "client"
# Where brokers and clients with certificates connect to a broker, besides its listener for all clients on this machine.
SECURE_LISTENER = "SECURE"
_TOKEN_BYTES = 24


class Certificates:
    """An authority in a cluster's folder, and a certificate of it for each gateway and broker."""

    def __init__(self, cluster: Path) -> None:
        self._folder = cluster / FOLDER
        self._authority_file = self._folder / "ca.pem"
        self._token_file = self._folder / "metrics.token"
        # What Kafka's tools take with --command-config.
        self.client_file = self._folder / "client.properties"

    def issue(self, names: Iterable[str]) -> None:
        """Make a new certificate for each name, for the engine and for clients, and write what clients need.

        Make the authority first, and the token of the metrics, if there is none.
        """
        # Loaded here, because only a secure cluster needs it.
        from conf.security.authority import Authority

        authority = Authority(self._folder)
        for name in (*names, _ENGINE, CLIENT):
            authority.issue(name)
        self._token_file.touch(0o600)
        # Also after a kill in the middle of this.
        if not self._token_file.stat().st_size:
            self._token_file.write_text(secrets.token_urlsafe(_TOKEN_BYTES) + "\n")
        client = {"security.protocol": "SSL"} | self._stores("ssl", CLIENT)
        self.client_file.write_text(properties_text(client))

    def engine_settings(self) -> tuple[str, ...]:
        """Return the settings with which an engine serves its page and metrics by HTTPS, to anyone with the token."""
        keystore = f"metrics.ssl.keystore.location={self._file(_ENGINE)}"
        return (keystore, f"metrics.token.file={self._token_file}")

    def gateway_settings(self, gateway: int) -> dict[str, str]:
        """Return the settings with which a gateway asks for certificates."""
        return {
            "security.protocol": "SSL",
            "ssl.keystore.location": str(self._file(f"gateway-{gateway}")),
            "ssl.truststore.location": str(self._authority_file),
        }

    def given_to(self, spec: NodeSpec, secure_port: int) -> NodeSpec:
        """Return a broker with the settings by which it shows its certificate to gateways, brokers and clients.

        Its second listener, at ``secure_port``, asks clients for a certificate. Its own overrides win.
        """
        bound = f"{LISTENER}://{LOOPBACK}:{spec.port},{SECURE_LISTENER}://{LOOPBACK}:{secure_port}"
        own = f"listener.name.{SECURE_LISTENER.lower()}.ssl"
        settings = {
            "listeners": bound,
            "advertised.listeners": bound,
            "inter.broker.listener.name": SECURE_LISTENER,
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,{SECURE_LISTENER}:SSL,{CONTROLLER_LISTENER}:SSL",
            f"{own}.client.auth": "required",
            f"{own}.principal.mapping.rules": DEFAULT_RULES,
        }
        for listener in (CONTROLLER_LISTENER, SECURE_LISTENER):
            settings |= self._stores(f"listener.name.{listener.lower()}.ssl", f"broker-{spec.node_id}")
        return replace(spec, overrides=settings | spec.overrides)

    def _stores(self, prefix: str, name: str) -> dict[str, str]:
        return {
            f"{prefix}.keystore.type": "PEM",
            f"{prefix}.keystore.location": str(self._file(name)),
            f"{prefix}.truststore.type": "PEM",
            f"{prefix}.truststore.location": str(self._authority_file),
        }

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.pem"
