"""Kafka's uuids as text: 22 characters of URL-safe base64."""

import base64
import binascii
import hashlib

UNASSIGNED_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
# The first ones stand for something else than a directory (``DirectoryId``).
_RESERVED = 100
_LENGTH = 22


def uuid_of(text: str) -> str:
    """Return ``text`` if it is a uuid as Kafka writes it; else one that is made of it, always the same.

    Incarnations and log directories of brokers that are not Kafka's are any text, and records have room for
    a uuid alone.
    """
    if len(text) == _LENGTH and text.isascii():
        try:
            data = base64.b64decode(text + "==", altchars=b"-_", validate=True)
        except binascii.Error:
            data = b""
        if _written(data) == text:
            return text
    return _written(hashlib.sha256(text.encode()).digest()[:16])


def is_reserved(uuid: str) -> bool:
    """Say whether a uuid is none that a log directory may have."""
    return int.from_bytes(base64.urlsafe_b64decode(uuid + "==")) < _RESERVED


def _written(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
