"""Open a connection to an address that others gave."""

import asyncio


async def opened(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect. Raises ``OSError``, also if ``host`` is no name that can be looked up."""
    try:
        return await asyncio.open_connection(host, port)
    except ValueError as error:
        # One with an empty part, for example, or with a zero byte.
        raise OSError(f"{host!r} is not a name of a host") from error
