"""Put values together while their sizes fit."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


def chunks(sized: Iterable[tuple[_T, int]], size_max: int, *, count_max: int | None = None) -> Iterator[list[_T]]:
    """Divide values, each with its size, into lists of at most ``size_max`` together. A larger value is alone.

    A list has at most ``count_max`` values, if that is given.
    """
    chunk: list[_T] = []
    total = 0
    for value, size in sized:
        if chunk and (total + size > size_max or len(chunk) == count_max):
            yield chunk
            chunk, total = [], 0
        chunk.append(value)
        total += size
    if chunk:
        yield chunk
