"""Find out whether a broker whose connection ended has died: a dead process's port refuses connections.

A connection may end for many reasons, and a process that was killed may accept a connection for some
more milliseconds while the kernel takes it down, so the port is tried more than once. One that refuses says that
nobody listens there; one that is reached, or does not answer (a host that is gone), says nothing, and the
session decides.
"""

import asyncio
from collections.abc import Iterable

DEADLINE_S = 0.5
PAUSE_S = 0.02

Endpoint = tuple[str, int]


async def is_refused(endpoints: Iterable[Endpoint]) -> bool:
    """Say whether all of a broker's endpoints refuse connections; tried for half a second."""
    listed = list(endpoints)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while listed:
                if all([await _refuses(host, port) for host, port in listed]):
                    return True
                await asyncio.sleep(PAUSE_S)
    except TimeoutError:
        pass
    return False


async def _refuses(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    writer.close()
    return False
