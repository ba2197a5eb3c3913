"""TLS for addresses that isrflow listens on, and for connections to them. Certificates are renewed without a restart.

Files are PEM, as Kafka takes them with ``ssl.keystore.type=PEM``: the keystore has a private key and its certificate
with those of its issuers, and the truststore has the certificates of the authorities that are trusted.

A changed file leads to a new context, because an authority cannot be taken out of an existing one. Each handshake
begins with the newest context. There are no session tickets and nothing older than TLS 1.3, because a resumed session
would not be verified again.
"""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from conf.security.reread import LOOK_INTERVAL_S, Reread

ClientAuth = Literal["none", "requested", "required"]
_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsError(ValueError):
    """A keystore or truststore cannot be used. The message names the setting and the file, but shows no content."""


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one side, and the settings that name them."""

    keystore: str = ""
    truststore: str = ""
    # Of the private key in the keystore; empty if it is not encrypted.
    key_password: str = ""
    keystore_setting: str = "ssl.keystore.location"
    truststore_setting: str = "ssl.truststore.location"

    @property
    def paths(self) -> list[Path]:
        return [Path(one) for one in (self.keystore, self.truststore) if one]

    def load(self, context: ssl.SSLContext) -> None:
        """Give ``context`` the files. Raises ``TlsError``."""
        if self.keystore:
            try:
                # Even without a password, because otherwise OpenSSL asks the terminal for one.
                context.load_cert_chain(self.keystore, password=self.key_password)
            except (OSError, ValueError) as error:
                expected = "expected PEM with a private key without a password, and its certificate"
                raise TlsError(f"{self.keystore_setting}: {self.keystore}: {_reason(error)}; {expected}") from error
        if self.truststore:
            try:
                context.load_verify_locations(self.truststore)
            except (OSError, ValueError) as error:
                expected = "expected PEM with certificates of authorities"
                raise TlsError(f"{self.truststore_setting}: {self.truststore}: {_reason(error)}; {expected}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "cannot be used"
    return (isinstance(error, OSError) and error.strerror) or "cannot be used"


def server_context(
    files: TlsFiles, client_auth: ClientAuth = "none", look_interval_s: float = LOOK_INTERVAL_S
) -> ssl.SSLContext:
    """Return a context for a listener, which follows changes of its files. Raises ``TlsError``."""

    def made() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0
        context.verify_mode = _VERIFY[client_auth]
        files.load(context)
        return context

    newest = Reread(files.paths, made, look_interval_s)
    context = newest.newest
    # Called in each handshake, also when the client names no server.
    context.sni_callback = lambda connection, name, first: setattr(connection, "context", newest.newest)
    return context


def client_contexts(
    files: TlsFiles, *, checks_host: bool = True, look_interval_s: float = LOOK_INTERVAL_S
) -> Callable[[], ssl.SSLContext]:
    """Return a function that gives the context for the next connection to a listener. Raises ``TlsError``."""

    def made() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = checks_host
        if not files.truststore:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        files.load(context)
        return context

    newest = Reread(files.paths, made, look_interval_s)
    return lambda: newest.newest
