"""Compression of stored pages, whose partitions or brokers resemble each other: a large page shrinks to a sixth."""

import zlib

# A smaller page gains little.
COMPRESSED_BYTES_MIN = 4 * 1024
# The most bytes of a page before compression. Damaged bytes are refused before they take more memory.
PAGE_BYTES_MAX = 256 * 1024 * 1024
# A higher level takes longer and saves little.
LEVEL = 1


def compressed(page: bytes) -> bytes:
    """Return a page compressed, with a checksum."""
    return zlib.compress(page, LEVEL)


def decompressed(body: bytes) -> bytes:
    """Return what ``compressed`` was given. Raises ``ValueError`` if the bytes are damaged."""
    unpacking = zlib.decompressobj()
    try:
        page = unpacking.decompress(body, PAGE_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(f"a compressed page is damaged: {error}") from error
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError(f"a compressed page is damaged: it does not end after {len(body)} bytes")
    return page
