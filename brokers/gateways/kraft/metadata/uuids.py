"""Kafka's uuids as text: 22 characters of URL-safe base64."""

import base64
import binascii
import hashlib

# The first uuids have special meanings and name no directory (``DirectoryId``).
_RESERVED = 100
_LENGTH = 22


def uuid_of(text: str) -> str:
    """Return ``text`` if it is a uuid as Kafka writes it, or else a uuid derived from it, always the same.

    The incarnation and log directories of a broker that is not Kafka's may be any text, but records have room only for
    uuids.
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
    """Say whether a uuid is reserved, so that no log directory may have it."""
    return int.from_bytes(base64.urlsafe_b64decode(uuid + "==")) < _RESERVED


def _written(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
