"""Ports for processes that restart."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from brokers.launch.kafka.properties import LOOPBACK
from brokers.launch.ports import PORTS, RESERVED_MAX, free_ports


def test_nobody_who_asks_for_any_port_gets_one_of_them() -> None:
    chosen = free_ports(20)
    assert len(set(chosen)) == 20
    with ExitStack() as stack:
        others = [stack.enter_context(socket.socket()) for _ in range(20)]
        for other in others:
            other.bind((LOOPBACK, 0))
        assert max(chosen) < min(int(other.getsockname()[1]) for other in others)


def test_nobody_is_given_a_port_that_was_chosen_for_a_process_that_does_not_listen_yet() -> None:
    some = range(PORTS.start, PORTS.start + 40)
    mine = {*free_ports(10, some), *free_ports(10, some)}
    ask = f"from brokers.launch.ports import free_ports; print(*free_ports(10, {some!r}))"
    theirs = subprocess.check_output([sys.executable, "-c", ask], text=True, timeout=60).split()
    assert len(mine | set(map(int, theirs))) == 30
    with pytest.raises(OSError, match=r"only \d+ of 40 ports between"):
        free_ports(40, some)


def test_a_process_keeps_only_its_last_ports() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2 * RESERVED_MAX):
        free_ports(1)
    assert len(os.listdir("/proc/self/fd")) <= before + RESERVED_MAX
