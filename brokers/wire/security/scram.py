"""SCRAM, RFC 5802 with SHA-256 and SHA-512: the server of an exchange, its client, and verifiers.

Kafka sends the messages inside SaslAuthenticate. There is no channel binding, as in Kafka. The server's part of the
nonce is new in each exchange, so messages of a former exchange prove nothing.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets

import msgspec

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS = 4_096
ITERATIONS_MAX = 1_000_000
SALT_BYTES = 24
_NONCE_BYTES = 24
_NAME = r"(?:[^\x00=,]|=2C|=3D)+"
_BASE64 = r"[A-Za-z0-9+/]*={0,2}"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_CLIENT_FIRST = re.compile(rf"(n,(?:a=({_NAME}))?,)(n=({_NAME}),r=({_PRINTABLE})(?:,[A-Za-z]=[^\x00,]+)*)")
_CLIENT_FINAL = re.compile(rf"(c=({_BASE64}),r=({_PRINTABLE})(?:,[A-Za-z]=[^\x00,]+)*),p=({_BASE64})")
_SERVER_FIRST = re.compile(rf"r=({_PRINTABLE}),s=({_BASE64}),i=([0-9]{{1,7}})(?:,.*)?")


class ScramError(Exception):
    """An exchange fails. The message is for the log, not for the client, and holds no secret."""


class Verifier(msgspec.Struct, frozen=True):
    """A password as a server keeps it. The password itself cannot be found from it, except by guessing."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return "Verifier(...)"


def verifier_of(mechanism: str, password: str, salt: bytes = b"", iterations: int = ITERATIONS) -> Verifier:
    """Make the verifier of a password, with a random salt if none is given."""
    name = HASHES[mechanism]
    salt = salt or secrets.token_bytes(SALT_BYTES)
    return verifier_of_salted(
        mechanism, hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations), salt, iterations
    )


def verifier_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Verifier:
    """Make the verifier of a password that its client has salted."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", name)
    return Verifier(salt, iterations, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name))


class ScramServer:
    """The server's side of one exchange: ``first``, then ``final``, each once."""

    def __init__(self, mechanism: str) -> None:
        self._hash = HASHES[mechanism]
        self._header = self._bare = self._server_first = self._nonce = ""
        self._verifier: Verifier | None = None

    def user_of(self, data: bytes) -> str:
        """Read the client's first message, and return the name of its user. Raises ``ScramError``."""
        found = _CLIENT_FIRST.fullmatch(_text(data))
        if found is None:
            raise ScramError("malformed first message")
        self._header, asked, self._bare, user, self._nonce = found.groups()
        name = _unescaped(user)
        if asked is not None and _unescaped(asked) != name:
            raise ScramError("the client asks to be another user")
        return name

    def first(self, verifier: Verifier) -> bytes:
        """Return the answer to the client's first message."""
        self._verifier = verifier
        self._nonce += secrets.token_urlsafe(_NONCE_BYTES)
        salt = base64.b64encode(verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={verifier.iterations}"
        return self._server_first.encode()

    def final(self, data: bytes) -> bytes:
        """Verify the client's proof, and return the server's. Raises ``ScramError``."""
        verifier, self._verifier = self._verifier, None
        found = _CLIENT_FINAL.fullmatch(_text(data))
        if verifier is None or found is None:
            raise ScramError("malformed final message")
        without_proof, binding, nonce, proof = found.groups()
        if not hmac.compare_digest(nonce.encode(), self._nonce.encode()):
            raise ScramError("the nonce of another exchange")
        if _bytes(binding) != self._header.encode():
            raise ScramError("another channel binding than at first")
        signed = f"{self._bare},{self._server_first},{without_proof}".encode()
        signature = hmac.digest(verifier.stored_key, signed, self._hash)
        given = _bytes(proof)
        if len(given) != len(signature):
            raise ScramError("a proof of the wrong length")
        key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(self._hash, key).digest(), verifier.stored_key):
            raise ScramError("wrong password, or no such user")
        return b"v=" + base64.b64encode(hmac.digest(verifier.server_key, signed, self._hash))


class ScramClient:
    """The client's side of one exchange: ``first``, ``final``, and ``verify``."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self._hash = HASHES[mechanism]
        self._password = password
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={secrets.token_urlsafe(_NONCE_BYTES)}"
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Answer the server's first message. Raises ``ScramError``."""
        text = _text(server_first)
        found = _SERVER_FIRST.fullmatch(text)
        if found is None or not found[1].startswith(self._bare.partition(",r=")[2]):
            raise ScramError("the server does not answer this exchange")
        iterations = int(found[3])
        if not ITERATIONS <= iterations <= ITERATIONS_MAX:
            raise ScramError(f"the server asks for {iterations} iterations")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), _bytes(found[2]), iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        without_proof = f"c={base64.b64encode(b'n,,').decode()},r={found[1]}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the server knows the password too. Raises ``ScramError``."""
        if not hmac.compare_digest(server_final, b"v=" + base64.b64encode(self._signature)):
            raise ScramError("the server does not know the password")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ScramError("a message that is not text") from error


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ScramError("a field that is not base64") from error
