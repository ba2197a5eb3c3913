"""The bearer token that an HTTP address asks for, from a file or from the environment."""

import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from conf.security.reread import LOOK_INTERVAL_S, Reread

VARIABLE = "ISRFLOW_METRICS_TOKEN"
SETTING = "metrics.token.file"
# The answer to a caller without the token: the header WWW-Authenticate, and a text.
CHALLENGE = 'Bearer realm="isrflow"'
HOW_TO_CALL = "Send the header Authorization: Bearer TOKEN\n"
LENGTH_MIN = 16
_LENGTH_MAX = 4_096


class TokenError(ValueError):
    """A token cannot be used. The message names where it comes from, and never what it is."""


class Token:
    """A secret that callers must know. A changed file is read again.

    Texts are compared by their digests and in constant time, so the time of an answer tells nothing about the token.
    """

    def __init__(self, file: str, given: str = "", look_interval_s: float = LOOK_INTERVAL_S) -> None:
        if file:
            self._digest = Reread([Path(file)], lambda: _digest(_in_file(file), f"{SETTING}: {file}"), look_interval_s)
        else:
            self._digest = Reread([], lambda: _digest(given, VARIABLE))

    def is_text(self, text: str) -> bool:
        """Return whether ``text`` is the token."""
        return hmac.compare_digest(hashlib.sha256(text.encode()).digest(), self._digest.newest)

    def is_in(self, authorization: str) -> bool:
        """Return whether an ``Authorization`` header has the token."""
        scheme, _, credentials = authorization.partition(" ")
        return scheme.lower() == "bearer" and self.is_text(credentials.strip())

    def signature(self, text: str) -> str:
        """Sign ``text`` with the token. When the token changes, former signatures are worth nothing."""
        return hmac.new(self._digest.newest, b"live page\n" + text.encode(), hashlib.sha256).hexdigest()


def token_of(file: str, environment: Mapping[str, str] = os.environ) -> Token | None:
    """Return the token that the file or the environment gives, or None if neither does. Raises ``TokenError``."""
    given = environment.get(VARIABLE, "")
    if file and given:
        raise TokenError(f"{SETTING} and {VARIABLE} are both set: expected one of them")
    return Token(file, given) if file or given else None


def _in_file(file: str) -> str:
    try:
        with Path(file).open(encoding="ascii") as opened:
            return opened.read(_LENGTH_MAX + 2).strip()
    except OSError as error:
        raise TokenError(f"{SETTING}: {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise TokenError(f"{SETTING}: {file}: expected ASCII text") from None


def _digest(text: str, where: str) -> bytes:
    if not LENGTH_MIN <= len(text) <= _LENGTH_MAX or not text.isascii() or not text.isprintable() or " " in text:
        raise TokenError(f"{where}: expected {LENGTH_MIN} to {_LENGTH_MAX} printable ASCII characters without spaces")
    return hashlib.sha256(text.encode()).digest()
