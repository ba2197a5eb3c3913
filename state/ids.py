"""Values for 'none', and values computed from names: a broker's id, and a topic's shard, page and id."""

import base64
import binascii
import hashlib
import zlib
from functools import lru_cache

NO_LEADER = -1
NO_EPOCH = -1
# The leader epoch of a deletion, LeaderAndIsr.EpochDuringDelete: a broker obeys it whatever epoch it holds (KIP-570).
EPOCH_DURING_DELETE = -2
UNKNOWN_OFFSET = -1
# Kafka's ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE.
PRODUCER_IDS_PER_BLOCK = 1_000
NO_TIME = -1
BROKER_ID_MAX = 2**31 - 1
UUID_BYTES = 16
# Uuid.ZERO_UUID stands for no id, and Uuid.METADATA_TOPIC_ID, which is 1, for the metadata log.
LAST_RESERVED_UUID = 1
# How many names are cached with their hashes. A pass through more topics than that finds none in the cache.
HASHES_MAX = 65_536


def broker_named(name: str) -> int | None:
    """Read a broker's id, which may have leading zeros; None if it is not an id."""
    if not (name.isascii() and name.isdecimal()):
        return None
    digits = name.lstrip("0") or "0"
    # Python would refuse to read thousands of digits.
    return int(digits) if len(digits) <= len(str(BROKER_ID_MAX)) and int(digits) <= BROKER_ID_MAX else None


def without_collisions(topic: str) -> str:
    """Unify names that collide in Kafka's metrics (``Topic.unifyCollisionChars``)."""
    return topic.replace(".", "_")


@lru_cache(maxsize=HASHES_MAX)
def topic_hash(topic: str) -> int:
    """Hash a topic's name so that colliding names have one hash.

    Kafka refuses a second topic whose name differs only in ``.`` and ``_`` (``Topic.hasCollision``). So both must be
    on one shard, which can refuse the second.
    """
    return zlib.crc32(without_collisions(topic).encode())


def shard_of(topic: str, shards: int) -> int:
    """Return the shard, 0 to ``shards`` - 1, that holds ``topic``."""
    return topic_hash(topic) % shards


def page_of(topic: str, shards: int, pages: int) -> int:
    """Return the page, 0 to ``pages`` - 1, of its shard in which ``topic`` is stored."""
    return topic_hash(topic) // shards % pages


def topic_id_of(topic: str, seq: int) -> str:
    """Derive the id of the topic that event ``seq`` created, as Kafka prints a Uuid.

    Twenty-two characters of URL-safe base64. A topic that is created again under its name gets another id, because
    another event created it (KIP-516). A replay gives the same id, because nothing is random.
    """
    return as_uuid(hashlib.sha256(f"{seq}:{topic}".encode()).digest()[:UUID_BYTES])


def as_uuid(data: bytes) -> str:
    """Write the 16 bytes of a Uuid as Kafka does: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def uuid_in(text: str) -> bytes | None:
    """Return the 16 bytes of a Uuid as Kafka prints it; None if the text is none."""
    try:
        data = base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == UUID_BYTES and as_uuid(data) == text else None


def is_topic_id(text: str) -> bool:
    """Return whether a topic may have this id: any Uuid except the two that ``Uuid`` reserves."""
    data = uuid_in(text)
    return data is not None and int.from_bytes(data) > LAST_RESERVED_UUID
