"""A comparison of a broker's settings with a gateway's: whether the two will understand each other.

Neither is started. TLS is tried in memory with the files of both, so the finding is what their handshake would be.
"""

import os
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from brokers.gateways.kraft.security.authorization import ANONYMOUS
from brokers.gateways.kraft.security.settings import Security, security_of
from brokers.gateways.kraft.security.token_key import BROKERS_KEY, GATEWAYS_KEY, TokenKey
from brokers.gateways.kraft.settings import Settings, load
from brokers.voters import voters_of
from brokers.wire.security.connecting import PLAIN
from cli.findings import Finding
from conf.layers import SettingsError
from conf.properties_file import pairs_in
from conf.security.tls import TlsFiles, client_contexts
from state.policy import TOPIC_NAMES

_JAAS_OPTION = re.compile(r'(username|password)[ \t]*=[ \t]*"([^"]*)"')
# The scheme is one that Kafka's clients allow before an address.
_ADDRESS = re.compile(r"(?:[A-Za-z0-9_]+://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")
_ROUNDS_MAX = 10
BOOTSTRAP = "controller.quorum.bootstrap.servers"


class _BrokerFile:
    """A broker's ``server.properties``, as its connections to controllers read it."""

    def __init__(self, file: Path) -> None:
        self._values = pairs_in(file)
        self.listener = self._values.get("controller.listener.names", "").split(",")[0].strip()

    def value(self, key: str, default: str = "") -> str:
        """Return a setting that no listener has of its own."""
        return self._values.get(key, default)

    def of_controllers(self, key: str, default: str = "") -> str:
        """Return a setting of the connections to controllers, or else the general one."""
        own = f"listener.name.{self.listener.lower()}.{key}"
        return self._values.get(own, self._values.get(key, default))

    def controller_host(self) -> str:
        """Return the host of the first controller. Raises ``ValueError`` if none is named as Kafka expects it."""
        if voters := self.value("controller.quorum.voters"):
            return voters_of(voters)[0].host
        first = self.value(BOOTSTRAP).split(",")[0].strip()
        if not first:
            raise ValueError(f"file names no controller: set {BOOTSTRAP} or controller.quorum.voters")
        match = _ADDRESS.fullmatch(first)
        if match is None:
            raise ValueError(f"{BOOTSTRAP}: {first!r} is not HOST:PORT")
        return match[1].strip("[]")

    @property
    def protocol(self) -> str:
        pairs = (pair.split(":") for pair in self.value("listener.security.protocol.map").split(",") if ":" in pair)
        found = {name.strip(): protocol.strip() for name, protocol in pairs}
        return found.get(self.listener, self.listener or "PLAINTEXT")


def broker_and_gateway(file: Path, conf: Path | None, sets: Sequence[str]) -> Iterator[Finding]:
    """Compare a broker's file with the settings of a gateway: those in ``conf``, the environment and ``sets``."""
    try:
        broker = _BrokerFile(file)
    except SettingsError as error:
        yield Finding("broker", False, True, str(error))
        return
    try:
        settings = load(conf, sets, environment=os.environ)
        security = security_of(settings)
        token_key = TokenKey(settings.delegation_token_secret_key_file)
    except (ValueError, SettingsError) as error:
        yield Finding("gateway", False, True, str(error))
        return
    protocol = settings.security_protocol
    same = broker.protocol == protocol
    told = f"the broker has {broker.protocol} for {broker.listener or 'no controller listener'}, the gateway {protocol}"
    yield Finding("protocol", same, True, protocol if same else told)
    yield from _authorizers(settings, broker)
    yield from _token_keys(token_key, broker)
    yield from _overruled(broker)
    if not same or security is None:
        return
    shown, principal = True, ANONYMOUS
    if security.tls is not None:
        tls, principal = _tls(security, security.tls, broker)
        shown = tls.there
        yield tls
    if security.mechanisms:
        sasl, principal = _sasl(security, broker)
        shown = True
        yield sasl
    # Without a handshake the broker's principal is not known.
    if shown:
        yield _node(security, broker, principal)


def _authorizers(settings: Settings, broker: _BrokerFile) -> Iterator[Finding]:
    """Compare the rules of access control, if either has an authorizer."""
    everyone = "allow.everyone.if.no.acl.found"
    ours: dict[str, str] = {"authorizer.class.name": settings.authorizer_class_name}
    theirs = {"authorizer.class.name": broker.value("authorizer.class.name")}
    if not any((*ours.values(), *theirs.values())):
        return
    ours[everyone] = str(settings.allow_everyone_if_no_acl_found).lower()
    theirs[everyone] = broker.value(everyone, "false").lower()
    different = [key for key, value in ours.items() if theirs[key] != value]
    texts = [
        f"{key} is {theirs[key] or 'not set'} on the broker, and {ours[key] or 'not set'} here" for key in different
    ]
    is_needed = bool(settings.authorizer_class_name)
    yield Finding("acls", not different, is_needed, "; ".join(texts) or "the broker and the gateway enforce ACLs alike")


def _overruled(broker: _BrokerFile) -> Iterator[Finding]:
    """Name the settings in a broker's file that the engine's values overrule."""
    for name in sorted(TOPIC_NAMES):
        if value := broker.value(name):
            where = "set it in the engine's file, or with kafka-configs --entity-type brokers --entity-default"
            yield Finding("overruled", False, False, f"{name}={value} does not count: the engine's value does; {where}")


def _token_keys(ours: TokenKey, broker: _BrokerFile) -> Iterator[Finding]:
    """Compare the keys of delegation tokens, if either side has one, without showing them."""
    theirs = broker.value(BROKERS_KEY)
    if ours.is_enabled and ours.is_key(theirs):
        yield Finding("tokens", True, True, "the broker and the gateway have the same key of delegation tokens")
    elif ours.is_enabled or theirs:
        text = f"{BROKERS_KEY} of the broker is not the key in {GATEWAYS_KEY}: no delegation token works"
        yield Finding("tokens", False, ours.is_enabled, text)


def _tls(security: Security, server: ssl.SSLContext, broker: _BrokerFile) -> tuple[Finding, str]:
    """Shake hands in memory. Return what was found, and the broker's principal."""
    wrong = [
        key
        for key in ("ssl.keystore", "ssl.truststore")
        if broker.of_controllers(f"{key}.location") and broker.of_controllers(f"{key}.type", "JKS") != "PEM"
    ]
    if wrong:
        return Finding("tls", False, False, f"the broker's {wrong[0]} is not PEM, so it cannot be read here"), ANONYMOUS
    files = TlsFiles(
        keystore=broker.of_controllers("ssl.keystore.location"),
        truststore=broker.of_controllers("ssl.truststore.location"),
    )
    checks_host = broker.of_controllers("ssl.endpoint.identification.algorithm", "https") == "https"
    try:
        host = broker.controller_host()
        context = client_contexts(files, checks_host=checks_host)()
        certificate = _handshake(context, server, host)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        return Finding("tls", False, True, f"the handshake fails: {why}"), ANONYMOUS
    except (OSError, ValueError) as error:
        return Finding("tls", False, True, f"the broker's {error}"), ANONYMOUS
    name = security.rules.principal_of(certificate.get("subject", ())) if certificate else ANONYMOUS  # type: ignore[arg-type]
    return Finding("tls", True, True, f"a handshake of both sides' certificates, for {host}"), name or ""


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> Mapping[str, object]:
    """Complete the handshake, and return the client's certificate. Raises ``ssl.SSLError``."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(sides)
    for _ in range(_ROUNDS_MAX):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    if waiting:
        raise ssl.SSLError("no end of the handshake")
    return sides[1].getpeercert() or {}


def _sasl(security: Security, broker: _BrokerFile) -> tuple[Finding, str]:
    mechanism = broker.value("sasl.mechanism.controller.protocol", "GSSAPI")
    if mechanism not in security.mechanisms:
        accepted = ", ".join(security.mechanisms)
        text = f"sasl.mechanism.controller.protocol is {mechanism}, and the gateway accepts {accepted}"
        return Finding("sasl", False, True, text), ANONYMOUS
    prefix = "plain" if mechanism == PLAIN else mechanism.lower()
    options = dict(_JAAS_OPTION.findall(broker.of_controllers(f"{prefix}.sasl.jaas.config")))
    user = options.get("username", "")
    assert security.credentials is not None
    if not security.credentials.is_password(user, options.get("password", "")):
        text = f"{prefix}.sasl.jaas.config: user {user!r} or its password is not in sasl.credentials.file"
        return Finding("sasl", False, True, text), f"User:{user}"
    return Finding("sasl", True, True, f"{mechanism} of {user!r}"), f"User:{user}"


def _node(security: Security, broker: _BrokerFile, principal: str) -> Finding:
    wanted = broker.value("node.id")
    found = security.brokers.node_of(principal)
    if found is not None and str(found) == wanted:
        return Finding("principal", True, True, f"{principal or 'none'} is broker {found}")
    is_what = f"is broker {found}" if found is not None else "is no broker"
    hint = "see broker.principal and ssl.principal.mapping.rules of the gateway"
    text = (
        f"{principal or 'the certificate maps to none, which'} {is_what}, and node.id is {wanted or 'not set'}: {hint}"
    )
    return Finding("principal", False, True, text)
