"""A broker is dead where all its ports refuse; what is not known in time is left to its session."""

import asyncio
import socket

import pytest

from isrflow.brokers.gateways.kraft import probing
from isrflow.brokers.kafka.cluster import free_ports

LOOPBACK = "127.0.0.1"


def test_a_port_where_nobody_listens_refuses_and_one_of_two_is_not_enough() -> None:
    [closed] = free_ports(1)
    with socket.create_server((LOOPBACK, 0)) as open_one:
        opened = open_one.getsockname()[1]
        assert asyncio.run(probing.is_refused([(LOOPBACK, closed)]))
        assert not asyncio.run(probing.is_refused([(LOOPBACK, closed), (LOOPBACK, opened)]))
    assert not asyncio.run(probing.is_refused([]))


def test_hosts_that_do_not_answer_are_waited_for_no_longer_together_than_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    async def never(host: str, port: int) -> None:
        begun.append(port)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    assert not asyncio.run(probing.is_refused([(LOOPBACK, 1), (LOOPBACK, 2)]))
    assert begun == [1]
