"""Ports for processes that restart."""

import socket
from contextlib import ExitStack

from brokers.launch.kafka.properties import LOOPBACK
from brokers.launch.ports import free_ports


def test_nobody_who_asks_for_any_port_gets_one_of_them() -> None:
    chosen = free_ports(20)
    assert len(set(chosen)) == 20
    with ExitStack() as stack:
        others = [stack.enter_context(socket.socket()) for _ in range(20)]
        for other in others:
            other.bind((LOOPBACK, 0))
        assert max(chosen) < min(int(other.getsockname()[1]) for other in others)
