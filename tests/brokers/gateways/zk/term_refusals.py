"""Terms that do not begin, because the bus is the wrong one."""

import pytest

from brokers.gateways.zk.bus_note import OtherBusError
from brokers.gateways.zk.leadership import Leadership


def refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the reasons are added for which a term does not begin."""
    begin, found = Leadership.begin, list[str]()

    async def noting(self: Leadership) -> None:
        try:
            await begin(self)
        except OtherBusError as error:
            found.append(str(error))
            raise

    monkeypatch.setattr(Leadership, "begin", noting)
    return found


async def nothing() -> None:
    """Add nothing to what is there."""
