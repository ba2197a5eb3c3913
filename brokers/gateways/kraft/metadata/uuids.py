"""Kafka's uuids as text: 22 characters of URL-safe base64."""

import base64
import hashlib

from state.ids import UUID_BYTES, as_uuid, uuid_in

# The first uuids have special meanings and name no directory (``DirectoryId``).
_RESERVED = 100


def uuid_of(text: str) -> str:
    """Return ``text`` if it is a uuid as Kafka writes it, or else a uuid derived from it, always the same.

    The incarnation and log directories of a broker that is not Kafka's may be any text, but records have room only for
    uuids.
    """
    return as_uuid(hashlib.sha256(text.encode()).digest()[:UUID_BYTES]) if uuid_in(text) is None else text


def is_reserved(uuid: str) -> bool:
    """Return whether a uuid is reserved, so that no log directory may have it."""
    return int.from_bytes(base64.urlsafe_b64decode(uuid + "==")) < _RESERVED
