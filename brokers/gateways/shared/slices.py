"""Iterate over many items without blocking the event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

# This many items take a few milliseconds, whatever is done with them.
ITEMS_PER_SLICE = 500

T = TypeVar("T")


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield ``items`` one by one, and let other tasks run after each slice. A single slice comes without a pause."""
    for number, item in enumerate(items):
        if number % ITEMS_PER_SLICE == 0 and number:
            await asyncio.sleep(0)
        yield item
