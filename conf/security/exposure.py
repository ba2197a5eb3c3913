"""The protection that an address needs before it is served."""

import ipaddress
import os
import ssl
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from conf.security.tls import TlsFiles, server_context
from conf.security.token import VARIABLE, Token, token_of

KEYSTORE = "metrics.ssl.keystore.location"
# The answer to a request with another host name, where no token is required.
ONLY_BY_ADDRESS = (
    "Without a token this is answered only under an IP address or as localhost. "
    f"Behind a proxy that passes on another name, set metrics.token.file or {VARIABLE}.\n"
)


class ExposureError(ValueError):
    """An address that others can reach would be served without protection."""


class Protection(msgspec.Struct, frozen=True):
    """How an HTTP address is protected."""

    token: Token | None = None
    tls: ssl.SSLContext | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"


def is_loopback(host: str) -> bool:
    """Return whether only this machine's processes reach ``host``. A name other than localhost may mean anything."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_by_address(host: str | None) -> bool:
    """Return whether a ``Host`` header has an address or localhost. Any other name may be an attacker's.

    Old clients that are not browsers send no such header.
    """
    if host is None:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ipaddress.ip_address(name))
    except ValueError:
        return False


class MetricsSettings(Protocol):
    """The settings of the address at which a process serves its metrics."""

    @property
    def metrics_host(self) -> str: ...
    @property
    def metrics_port(self) -> int: ...
    @property
    def metrics_ssl_keystore_location(self) -> str: ...
    @property
    def metrics_token_file(self) -> str: ...


def protection_of(settings: MetricsSettings, environment: Mapping[str, str] = os.environ) -> Protection:
    """Return the protection of a metrics address. Raises ``ValueError`` if it is invalid, or too weak for the host.

    An address beyond loopback needs both: without the token any client reads it, and without TLS any machine on the
    path reads the token.
    """
    if settings.metrics_port < 0:
        return Protection()
    token, keystore = token_of(settings.metrics_token_file, environment), settings.metrics_ssl_keystore_location
    tls = server_context(TlsFiles(keystore=keystore, keystore_setting=KEYSTORE)) if keystore else None
    missing = [name for name, there in ((KEYSTORE, tls), (f"metrics.token.file or {VARIABLE}", token)) if not there]
    if missing and not is_loopback(settings.metrics_host):
        raise ExposureError(
            f"metrics.host: {settings.metrics_host} is not loopback, so other machines reach it: also set "
            f"{' and '.join(missing)}, or serve on 127.0.0.1"
        )
    return Protection(token, tls)
