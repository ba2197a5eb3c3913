"""A gateway's settings about security, read and checked once: certificates, mechanisms and principals."""

import ssl
from pathlib import Path

import msgspec

from brokers.gateways.kraft.security.credentials import MECHANISMS, Credentials
from brokers.gateways.kraft.security.principals import NodePrincipals, PrincipalRules
from brokers.gateways.kraft.settings import Settings
from brokers.wire.security.connecting import PLAIN, Client
from conf.security.tls import ClientAuth, TlsFiles, client_contexts, server_context

_PASSWORD_MAX = 4_096


class SecurityError(ValueError):
    """Settings about security do not fit each other. The message names them, and shows no secret."""


class Security(msgspec.Struct, frozen=True):
    """The means by which a gateway's listener knows its peers."""

    rules: PrincipalRules
    brokers: NodePrincipals
    gateways: NodePrincipals
    # Empty without SASL.
    mechanisms: tuple[str, ...]
    credentials: Credentials | None
    # None without TLS.
    tls: ssl.SSLContext | None
    client: Client


def security_of(settings: Settings) -> Security | None:
    """Read the settings and their files; None for PLAINTEXT. Raises ``ValueError`` that names the setting."""
    protocol = settings.security_protocol
    if protocol == "PLAINTEXT":
        _check_trust(settings)
        return None
    is_tls, is_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    client_auth = _client_auth(settings, is_sasl)
    if is_tls and not settings.ssl_keystore_location:
        raise SecurityError(f"security.protocol={protocol} needs ssl.keystore.location")
    if client_auth != "none" and is_tls and not settings.ssl_truststore_location:
        raise SecurityError(f"ssl.client.auth={client_auth} needs ssl.truststore.location")
    files = TlsFiles(keystore=settings.ssl_keystore_location, truststore=settings.ssl_truststore_location)
    mechanisms = _mechanisms(settings, is_tls) if is_sasl else ()
    return Security(
        rules=PrincipalRules(settings.ssl_principal_mapping_rules),
        brokers=NodePrincipals("broker.principal", settings.broker_principal),
        gateways=NodePrincipals("gateway.principal", settings.gateway_principal),
        mechanisms=mechanisms,
        credentials=Credentials(settings.sasl_credentials_file) if is_sasl else None,
        tls=server_context(files, client_auth) if is_tls else None,
        client=_client(settings, files, is_tls, mechanisms),
    )


def _check_trust(settings: Settings) -> None:
    """Refuse access control on a listener where any program can pose as a broker, and speak for any client."""
    asked = {"authorizer.class.name": settings.authorizer_class_name, "super.users": settings.super_users}
    named = [name for name, value in asked.items() if value]
    if named and not settings.allow_authorizer_on_plaintext:
        raise SecurityError(
            f"{' and '.join(named)} on a PLAINTEXT listener stop no one: any program that reaches it can pose as a "
            "broker, and speak for any client. Set security.protocol to SSL or SASL_SSL, or "
            "allow.authorizer.on.plaintext=true if only brokers reach it"
        )


def _client_auth(settings: Settings, is_sasl: bool) -> ClientAuth:
    given = settings.ssl_client_auth
    if given == "":
        return "none" if is_sasl else "required"
    if given == "none" and not is_sasl:
        raise SecurityError(
            "security.protocol=SSL with ssl.client.auth=none: no broker could prove that it is one; "
            "set ssl.client.auth to required or requested, or use SASL_SSL"
        )
    return given


def _mechanisms(settings: Settings, is_tls: bool) -> tuple[str, ...]:
    names = tuple(name.strip() for name in settings.sasl_enabled_mechanisms.split(",") if name.strip())
    if not names or set(names) - set(MECHANISMS):
        raise SecurityError(f"sasl.enabled.mechanisms: expected some of {', '.join(MECHANISMS)}")
    if PLAIN in names and not is_tls:
        raise SecurityError("sasl.enabled.mechanisms: PLAIN sends passwords as they are, so it needs SASL_SSL")
    if not settings.sasl_credentials_file:
        raise SecurityError(f"security.protocol={settings.security_protocol} needs sasl.credentials.file")
    return names


def _client(settings: Settings, files: TlsFiles, is_tls: bool, mechanisms: tuple[str, ...]) -> Client:
    checks_host = settings.ssl_endpoint_identification_algorithm == "https"
    tls = client_contexts(files, checks_host=checks_host) if is_tls else None
    if not mechanisms or not settings.sasl_username:
        return Client(tls)
    file = settings.sasl_password_file
    secret_in("sasl.password.file", file)
    # A mechanism that proves the password comes before PLAIN, which sends it.
    strongest = next(name for name in reversed(MECHANISMS) if name in mechanisms)
    return Client(tls, strongest, settings.sasl_username, lambda: secret_in("sasl.password.file", file))


def secret_in(setting: str, file: str) -> str:
    """Read the secret in the file that a setting names. Raises ``SecurityError``, which does not show it."""
    try:
        with Path(file).open(encoding="utf-8") as opened:
            password = opened.read(_PASSWORD_MAX + 2).rstrip("\r\n")
    except OSError as error:
        raise SecurityError(f"{setting}: {file or 'not set'}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SecurityError(f"{setting}: {file}: expected UTF-8 text") from None
    if not 0 < len(password) <= _PASSWORD_MAX:
        raise SecurityError(f"{setting}: {file}: expected a secret of 1 to {_PASSWORD_MAX} characters")
    return password
