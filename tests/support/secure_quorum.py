"""A gateway in this process whose listener authenticates clients, and clients with certificates."""

import ssl
from pathlib import Path
from typing import Any

from conf.security.authority import Authority
from conf.security.tls import TlsFiles, client_contexts
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

MTLS = {"security_protocol": "SSL"}


class SecureQuorum(InProcessQuorum):
    """Gateways with certificates of an authority in ``directory``; by default, clients need one too."""

    def __init__(self, directory: Path, gateways: int = 1, **settings: Any) -> None:
        self.authority = Authority(directory / "ca")
        self.authority.issue("broker-0")
        files = {
            "ssl_keystore_location": str(self.authority.issue("gateway-100")),
            "ssl_truststore_location": str(self.authority.certificate_file),
        }
        super().__init__(directory, gateways, **(files | MTLS | settings))

    @property
    def port(self) -> int:
        return self.voters[0].port

    def tls(self, name: str = "") -> ssl.SSLContext:
        """Return the context of a client with the certificate ``name``, or without one."""
        keystore = str(self.authority.folder / f"{name}.pem") if name else ""
        return client_contexts(TlsFiles(keystore=keystore, truststore=str(self.authority.certificate_file)))()

    def client(self, gateway: int = 100, name: str = "broker-0") -> ControllerClient:
        """Connect with the certificate of ``name``."""
        port = next(voter.port for voter in self.voters if voter.voter == gateway)
        return ControllerClient(port, self.tls(name))

    def client_of(self, name: str) -> ControllerClient:
        """Connect with a new certificate for ``name``."""
        self.authority.issue(name)
        return self.client(name=name)
