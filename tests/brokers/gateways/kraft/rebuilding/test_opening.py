"""While a log is compared with the decisions, which may take long, the event loop serves others."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.log import storage as storages
from brokers.gateways.kraft.log.storage import Storage
from brokers.gateways.kraft.rebuilding.opening import Opening
from brokers.gateways.kraft.settings import Identity
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from tests.support.waiting import TIMEOUT_S


def opening_in(folder: Path) -> Opening:
    voters = (Voter(100, "127.0.0.1", 9_093),)
    identity = Identity(gateway=100, voters=voters, cluster_id="c", directory=folder / "log")
    return Opening(identity, snapshot_interval_bytes=1 << 30, rebuild_wait_max_ms=100)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_event_loop_goes_on_while_a_log_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_stopped: bool
) -> None:
    began, may_end = threading.Event(), threading.Event()
    compared = storages.compared

    def slowly(*given: Any) -> Any:
        began.set()
        assert may_end.wait(TIMEOUT_S)
        return compared(*given)

    monkeypatch.setattr(storages, "compared", slowly)
    bus, opening = EmbeddedBus(tmp_path / "bus.db"), opening_in(tmp_path)

    async def opened() -> Storage | None:
        task = asyncio.create_task(opening.storage(bus, 1_000))
        while not began.is_set():
            await asyncio.sleep(0.01)
        if is_stopped:
            task.cancel()
            await asyncio.wait([task])
        # Only the loop lets the comparison end.
        may_end.set()
        return None if task.cancelled() else await task

    found = asyncio.run(opened())
    assert (found is None) == is_stopped
    opening.close()
    # Everything was closed, so that another one may open it.
    again = opening_in(tmp_path)
    asyncio.run(again.storage(bus, 1_000))
    again.close()
    bus.close()
