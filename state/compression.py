"""Compression of stored pages, whose partitions or brokers resemble each other: a large page shrinks to a tenth."""

import struct

# A smaller page gains little.
COMPRESSED_BYTES_MIN = 4 * 1024
# Of a page before compression. A damaged length is refused before that much memory is taken.
PAGE_BYTES_MAX = 256 * 1024 * 1024
_CODEC = "zstd"
_LENGTH = struct.Struct(">I")

# pyarrow is imported where it is needed, because that takes a tenth of a second, and most programs read no large page.


def compressed(page: bytes) -> bytes:
    """Return the length of a page and its compressed bytes."""
    import pyarrow as pa

    return _LENGTH.pack(len(page)) + bytes(pa.compress(page, codec=_CODEC, asbytes=True))


def decompressed(body: bytes) -> bytes:
    """Return what ``compressed`` was given. Raises ``ValueError`` if the bytes are damaged."""
    import pyarrow as pa

    try:
        (length,) = _LENGTH.unpack_from(body)
        if length > PAGE_BYTES_MAX:
            raise ValueError(f"a page of {length} bytes, more than {PAGE_BYTES_MAX}")
        page = pa.decompress(memoryview(body)[_LENGTH.size :], decompressed_size=length, codec=_CODEC, asbytes=True)
    except (struct.error, OSError) as error:
        raise ValueError(f"a compressed page is damaged: {error}") from error
    return bytes(page)
