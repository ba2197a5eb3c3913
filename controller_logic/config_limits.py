"""Refuse settings that no bus could carry.

The settings of an entity travel in one decision. The settings of the cluster and its brokers are in each shard's state.
"""

from collections.abc import Iterable, Mapping

from state.topic_settings import VALUE_BYTES_MAX

KEYS_MAX = 1_000
ENTITY_BYTES_MAX = 256 * 1024
# For the cluster and all brokers together, because each shard has them all.
SHARED_BYTES_MAX = 1024 * 1024


def complaint_about_size(before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """Return what is too large about an entity's settings ``after`` a change; None if nothing is.

    Settings from before the limits may exceed them. A change may make them fewer or smaller, but not more or larger.
    """
    for key, value in after.items():
        size = _bytes(value)
        if size > VALUE_BYTES_MAX and before.get(key) != value:
            return f"the value of {key} has {size} bytes: at most {VALUE_BYTES_MAX} are allowed"
    if len(after) > max(KEYS_MAX, len(before)):
        return f"there would be {len(after)} settings: at most {KEYS_MAX} are allowed"
    size = size_of(after)
    if size > max(ENTITY_BYTES_MAX, size_of(before)):
        return f"names and values would have {size} bytes: at most {ENTITY_BYTES_MAX} are allowed"
    return None


def complaint_about_shared(before: Iterable[Mapping[str, str]], after: Iterable[Mapping[str, str]]) -> str | None:
    """Return what is wrong with the size of all settings of the cluster and its brokers; None if nothing is."""
    size = sum(map(size_of, after))
    if size > max(SHARED_BYTES_MAX, sum(map(size_of, before))):
        return f"the settings of cluster and brokers would have {size} bytes: at most {SHARED_BYTES_MAX} are allowed"
    return None


def size_of(config: Mapping[str, str]) -> int:
    """Count the bytes of names and values."""
    return sum(_bytes(key) + _bytes(value) for key, value in config.items())


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
