"""What a broker answers is reported to the engine: not while it has more to hear, but eventually."""

import asyncio
from pathlib import Path

import pytest

from brokers.gateways.zk.channels import channel
from tests.brokers.gateways.zk.channels.door import Door
from tests.brokers.gateways.zk.channels.way import cancelled, run, until, way_to
from tests.brokers.gateways.zk.decided import led, topic
from tests.support.waiting import TIMEOUT_S


@pytest.mark.parametrize("wait_s", [TIMEOUT_S, 0.05])
def test_reports_wait_while_there_are_requests_to_send(
    wait_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "REPORTS_WAIT_S", wait_s)

    async def work() -> None:
        go_on = asyncio.Event()
        door = Door()
        door.hold_after(2, go_on)
        async with way_to(door, tmp_path) as way:
            way.hear(*[led(partition=number, is_new=True) for number in range(4_001)], topic())
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            # The first two answers are about 4,000 partitions. The third one is late.
            await until(lambda: door.names == ["LeaderAndIsr"] * 3)
            if wait_s < TIMEOUT_S:
                await until(lambda: len(way.reports()) == 4_000)
            else:
                # As long as it takes to publish what was told.
                await asyncio.sleep(0.3)
            assert len(way.reports()) == (0 if wait_s == TIMEOUT_S else 4_000)
            go_on.set()
            await until(lambda: len(way.reports()) == 4_001)
            await cancelled([task])

    run(work())


def test_a_channel_that_ends_reports_what_it_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "REPORTS_WAIT_S", TIMEOUT_S)

    async def work() -> None:
        door = Door()
        door.hold_after(1, asyncio.Event())
        async with way_to(door, tmp_path) as way:
            way.hear(led(is_new=True), topic())
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            await until(lambda: len(door.names) == 2)
            await cancelled([task])
            await until(lambda: way.reports() == [(0, "leader")])

    run(work())
