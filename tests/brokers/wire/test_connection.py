"""Connections to addresses that others gave."""

import asyncio

import pytest

from brokers.gateways.kraft.probing import is_refused
from brokers.wire.connection import FrameConnection

TIMEOUT_MS = 10_000
NO_NAMES = ("a..b", "a" * 64, "a\0b")


@pytest.mark.parametrize("host", NO_NAMES)
def test_a_host_whose_name_is_none_cannot_be_reached(host: str) -> None:
    async def scene() -> None:
        with pytest.raises(OSError, match="is not a name of a host"):
            await FrameConnection.open(host, 1, TIMEOUT_MS, 1)

    asyncio.run(scene())


def test_a_host_whose_name_is_none_refuses_nothing() -> None:
    assert not asyncio.run(is_refused([(NO_NAMES[0], 1)]))
