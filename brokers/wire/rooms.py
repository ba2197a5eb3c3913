"""The memory that requests take while they are read and answered, over all connections of one server.

A frame takes its size, and more when it has become objects. The two are counted apart, and the second only when the
whole frame is there. So a client that sends slowly keeps no room for objects from others. A request that has both
rooms needs no further one, but its answer may wait for other processes and for earlier answers of its connection.

Both are kept until the answer. Requests that are answered without another process must not wait behind the others, so
a server has rooms for each of the two kinds.
"""

import asyncio
from collections.abc import Callable

# Returns, from the first bytes of a request's frame, whether its answer waits for no other process.
IsQuick = Callable[[bytes], bool]
# How many bytes of a frame it gets.
START_BYTES = 1024
# How many bytes of memory the objects in a frame of a size may take.
DecodedBytesMax = Callable[[int], int]

# Requests up to this size do not wait for larger ones.
LARGE_REQUEST_BYTES = 64 * 1024
# Requests up to this size are not counted. So heartbeats wait for no other request.
TINY_REQUEST_BYTES = 1024
# The memory that the objects in all requests of a kind between these two sizes may take.
SMALL_DECODED_BYTES_MAX = 64 * 1024 * 1024


class _Room:
    """A bound on a number of bytes."""

    def __init__(self, size: int) -> None:
        self._left = self._size = size
        self._freed = asyncio.Event()
        self._first = asyncio.Lock()

    async def take(self, size: int) -> None:
        """Wait for room. A request that is larger than the whole room waits until it is empty.

        Requests get room in the order in which they came. Otherwise a stream of small ones would keep out a large one.
        """
        async with self._first:
            while self._left < min(size, self._size):
                await self._freed.wait()
            self._left -= size

    def free(self, size: int) -> None:
        self._left += size
        self._freed.set()
        self._freed = asyncio.Event()


class Rooms:
    """The rooms of a server: for large frames, for the objects in them, and for the objects in small frames.

    ``size_max`` is the limit of each of the first two, in bytes.
    """

    def __init__(self, size_max: int, decoded_bytes_max: DecodedBytesMax) -> None:
        self._frames = _Room(size_max)
        self._large = _Room(size_max)
        self._small = _Room(SMALL_DECODED_BYTES_MAX)
        self._decoded_bytes_max = decoded_bytes_max

    async def take_frame(self, size: int) -> None:
        """Wait for room for a frame that is to be read. Only a large one needs any."""
        if size > LARGE_REQUEST_BYTES:
            await self._frames.take(size)

    def free_frame(self, size: int) -> None:
        """Give back what ``take_frame`` took."""
        if size > LARGE_REQUEST_BYTES:
            self._frames.free(size)

    async def take_decoded(self, size: int) -> None:
        """Wait for room for the objects in a frame that was read. A tiny one needs none."""
        if size > TINY_REQUEST_BYTES:
            await self._decoded(size).take(self._decoded_bytes_max(size))

    def free_both(self, size: int, _answer: object = None) -> None:
        """Give back what ``take_frame`` and ``take_decoded`` took, once there is an answer."""
        self.free_frame(size)
        if size > TINY_REQUEST_BYTES:
            self._decoded(size).free(self._decoded_bytes_max(size))

    def _decoded(self, size: int) -> _Room:
        return self._large if size > LARGE_REQUEST_BYTES else self._small
