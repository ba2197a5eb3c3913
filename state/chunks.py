"""Lists of values whose sizes fit together."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


def chunks(sized: Iterable[tuple[_T, int]], size_max: int, *, count_max: int | None = None) -> Iterator[list[_T]]:
    """Divide values into lists whose sizes add up to at most ``size_max``. A larger value is alone in its list.

    If ``count_max`` is given, a list has at most that many values.
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
