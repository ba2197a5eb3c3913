"""The users of SASL, from a file. A changed file is in force a second later.

The file is TOML with a table for each user: a password, or what Kafka keeps of one for a mechanism of SCRAM.

    [alice]
    scram-sha-512 = "salt=...,stored_key=...,server_key=...,iterations=4096"

    [broker-1]
    password = "..."

An exchange of SCRAM begins with the salt and the iterations of a user, before the client has proved anything. So users
who do not exist have them too: as long and as many as some user has, and always the same ones. ``secret``, before the
first table, makes them the same at all gateways and after each start; it is any text of 32 characters or more.

    secret = "..."
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

from brokers.wire.security.connecting import PLAIN
from brokers.wire.security.scram import HASHES, ITERATIONS, ITERATIONS_MAX, SALT_BYTES, Verifier, verifier_of
from conf.security.reread import LOOK_INTERVAL_S, Reread

SETTING = "sasl.credentials.file"
USERS_MAX = 10_000
_FILE_BYTES_MAX = 4 * 1024 * 1024
_STORED = re.compile(r"salt=([^,]+),stored_key=([^,]+),server_key=([^,]+),iterations=([0-9]{1,7})")
_SECRET = "secret"
_SECRET_CHARS_MIN = 32
MECHANISMS = (PLAIN, *HASHES)


class CredentialsError(ValueError):
    """The file cannot be used. The message names the user and the field, but no value."""


class Salts:
    """The salts of users who have none of their own: always the same ones, and they look like random ones."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, user: str, mechanism: str, size: int) -> bytes:
        """Return ``size`` bytes."""
        return hashlib.shake_256(self._secret + f"\0{mechanism} {user}".encode()).digest(size)


class _Shape(NamedTuple):
    """The part of a user's credentials that any client may see."""

    salt_bytes: int
    iterations: int


class _Held(NamedTuple):
    """The content of a file."""

    verifiers: Mapping[tuple[str, str], Verifier]
    users: frozenset[str]
    # The shapes of its users' credentials, by mechanism.
    shapes: Mapping[str, Set[_Shape]]
    salts: Salts


class Credentials:
    """The verifiers of all users, by mechanism. Passwords are not kept. Raises ``CredentialsError``."""

    def __init__(self, file: str, look_interval_s: float = LOOK_INTERVAL_S) -> None:
        own_secret = secrets.token_bytes(32)
        self._held = Reread([Path(file)], lambda: _read(Path(file), own_secret), look_interval_s)

    def users(self) -> frozenset[str]:
        """Return the names of all users. This reads the file again if it has changed."""
        return self._held.newest.users

    def verifier(self, mechanism: str, user: str) -> Verifier:
        """Return the verifier of a user. If the user does not exist, return one that no password fits.

        So an exchange does not tell which users exist.
        """
        held = self._held.newest
        return held.verifiers.get((mechanism, user)) or _absent(held, mechanism, user)

    def is_password(self, user: str, password: str) -> bool:
        """Return whether this is a user's password. The answer takes as long for a user who does not exist."""
        held = self._held.newest
        known = (name for name in HASHES if (name, user) in held.verifiers)
        mechanism = next(known, next(iter(held.shapes), next(iter(HASHES))))
        expected = self.verifier(mechanism, user)
        given = verifier_of(mechanism, password, expected.salt, expected.iterations)
        return hmac.compare_digest(given.stored_key, expected.stored_key)


def _read(file: Path, own_secret: bytes) -> _Held:
    try:
        if file.stat().st_size > _FILE_BYTES_MAX:
            raise CredentialsError(f"{SETTING}: {file}: expected at most {_FILE_BYTES_MAX} bytes")
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CredentialsError(f"{SETTING}: {file}: {error.strerror}") from error
    except ValueError as error:
        if isinstance(error, CredentialsError):
            raise
        # Not the parser's text, because it may quote what it found.
        raise CredentialsError(f"{SETTING}: {file}: expected TOML with a table for each user") from None
    given = tables.pop(_SECRET, None)
    if given is not None and not (isinstance(given, str) and len(given) >= _SECRET_CHARS_MIN):
        raise CredentialsError(
            f"{SETTING}: {file}: {_SECRET}: expected a text of {_SECRET_CHARS_MIN} characters or more"
        )
    if len(tables) > USERS_MAX:
        raise CredentialsError(f"{SETTING}: {file}: expected at most {USERS_MAX} users")
    salts = Salts(given.encode() if given else own_secret)
    verifiers = {
        (mechanism, user): verifier
        for user, table in tables.items()
        for mechanism, verifier in _of_user(f"{SETTING}: {file}: {user}", table, user, salts).items()
    }
    shapes: dict[str, set[_Shape]] = {}
    for (mechanism, _), verifier in verifiers.items():
        shapes.setdefault(mechanism, set()).add(_Shape(len(verifier.salt), verifier.iterations))
    return _Held(verifiers, frozenset(tables), shapes, salts)


def _absent(held: _Held, mechanism: str, user: str) -> Verifier:
    """Return a verifier that no password fits, and that looks like one of a user."""
    shapes = held.shapes.get(mechanism) or {_Shape(SALT_BYTES, ITERATIONS)}
    shape = max(shapes, key=lambda one: held.salts.of(f"{one} {user}", mechanism, SALT_BYTES))
    size = hashlib.new(HASHES[mechanism]).digest_size
    salt = held.salts.of(user, mechanism, shape.salt_bytes)
    return Verifier(salt, shape.iterations, secrets.token_bytes(size), secrets.token_bytes(size))


def _of_user(where: str, table: Any, user: str, salts: Salts) -> dict[str, Verifier]:
    names = [name.lower() for name in HASHES]
    if not isinstance(table, dict) or not table or not all(isinstance(value, str) for value in table.values()):
        raise CredentialsError(f"{where}: expected a table with texts: password, or {', '.join(names)}")
    if unknown := sorted(set(table) - {"password", *names}):
        raise CredentialsError(f"{where}: {unknown[0]}: expected password, or {', '.join(names)}")
    if "password" in table:
        if len(table) > 1 or not table["password"]:
            raise CredentialsError(f"{where}: expected one password and nothing else")
        # The salt is the one that the user would have without a password, so it stays when the file is read again.
        return {name: verifier_of(name, table["password"], salts.of(user, name, SALT_BYTES)) for name in HASHES}
    return {name.upper(): _stored(f"{where}: {name}", name.upper(), value) for name, value in table.items()}


def _stored(where: str, mechanism: str, text: str) -> Verifier:
    found = _STORED.fullmatch(text.strip())
    expected = "expected salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=NUMBER"
    if found is None:
        raise CredentialsError(f"{where}: {expected}")
    try:
        salt, stored_key, server_key = (base64.b64decode(part, validate=True) for part in found.groups()[:3])
    except binascii.Error:
        raise CredentialsError(f"{where}: {expected}") from None
    size = hashlib.new(HASHES[mechanism]).digest_size
    iterations = int(found[4])
    if not salt or {len(stored_key), len(server_key)} != {size} or not ITERATIONS <= iterations <= ITERATIONS_MAX:
        keys = f"keys of {size} bytes and {ITERATIONS} to {ITERATIONS_MAX} iterations"
        raise CredentialsError(f"{where}: expected a salt, {keys}")
    return Verifier(salt, iterations, stored_key, server_key)
