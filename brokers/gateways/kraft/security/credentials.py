"""The users of SASL, from a file. A changed file is in force a second later.

The file is TOML with a table for each user: a password, or what Kafka keeps of one for a mechanism of SCRAM.

    [alice]
    scram-sha-512 = "salt=...,stored_key=...,server_key=...,iterations=4096"

    [broker-1]
    password = "..."
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brokers.gateways.kraft.security.scram import HASHES, ITERATIONS, ITERATIONS_MAX, SALT_BYTES, Verifier, verifier_of
from conf.security.reread import LOOK_INTERVAL_S, Reread

SETTING = "sasl.credentials.file"
USERS_MAX = 10_000
_FILE_BYTES_MAX = 4 * 1024 * 1024
_STORED = re.compile(r"salt=([^,]+),stored_key=([^,]+),server_key=([^,]+),iterations=([0-9]{1,7})")
PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *HASHES)


class CredentialsError(ValueError):
    """The file cannot be used. The message names the user and the field, and no value."""


class Credentials:
    """The verifiers of all users, by mechanism. Passwords are not kept. Raises ``CredentialsError``."""

    def __init__(self, file: str, look_interval_s: float = LOOK_INTERVAL_S) -> None:
        self._held = Reread([Path(file)], lambda: _read(Path(file)), look_interval_s)
        self._secret = secrets.token_bytes(32)

    def verifier(self, mechanism: str, user: str) -> Verifier:
        """Return the verifier of a user. If the user does not exist, return one that no password fits.

        So an exchange does not tell which users exist.
        """
        return self._held.newest.get((mechanism, user)) or self._nobody(mechanism, user)

    def is_password(self, user: str, password: str) -> bool:
        """Say whether this is a user's password. This takes as long if the user does not exist."""
        held = self._held.newest
        mechanism = next((name for name in HASHES if (name, user) in held), next(iter(HASHES)))
        expected = self.verifier(mechanism, user)
        given = verifier_of(mechanism, password, expected.salt, expected.iterations)
        return hmac.compare_digest(given.stored_key, expected.stored_key)

    def _nobody(self, mechanism: str, user: str) -> Verifier:
        # The same salt each time, as for a user who exists.
        salt = hmac.digest(self._secret, f"{mechanism} {user}".encode(), "sha256")[:SALT_BYTES]
        size = hashlib.new(HASHES[mechanism]).digest_size
        return Verifier(salt, ITERATIONS, secrets.token_bytes(size), secrets.token_bytes(size))


def _read(file: Path) -> Mapping[tuple[str, str], Verifier]:
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
    if len(tables) > USERS_MAX:
        raise CredentialsError(f"{SETTING}: {file}: expected at most {USERS_MAX} users")
    return {
        (mechanism, user): verifier
        for user, table in tables.items()
        for mechanism, verifier in _of_user(f"{SETTING}: {file}: {user}", table).items()
    }


def _of_user(where: str, table: Any) -> dict[str, Verifier]:
    names = [name.lower() for name in HASHES]
    if not isinstance(table, dict) or not table or not all(isinstance(value, str) for value in table.values()):
        raise CredentialsError(f"{where}: expected a table with texts: password, or {', '.join(names)}")
    if unknown := sorted(set(table) - {"password", *names}):
        raise CredentialsError(f"{where}: {unknown[0]}: expected password, or {', '.join(names)}")
    if "password" in table:
        if len(table) > 1 or not table["password"]:
            raise CredentialsError(f"{where}: expected one password and nothing else")
        return {mechanism: verifier_of(mechanism, table["password"]) for mechanism in HASHES}
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
