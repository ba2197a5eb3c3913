"""Ports that a process finds free again when it restarts."""

import random
import socket
from collections import deque

from brokers.launch.kafka.properties import LOOPBACK

# Systems give ports from 32768 or 49152 on to programs that ask for any port, such as every client that connects.
# Such a program could get the port of a process that is restarting.
PORTS = range(20_000, 32_768)
# How many of the last ports that it has chosen a process keeps until it ends. The largest cluster has 74 ports.
RESERVED_MAX = 80
_reserved: deque[socket.socket] = deque()


def free_ports(count: int, ports: range = PORTS) -> list[int]:
    """Choose ports on loopback on which no process listens at the moment, and which no system gives to clients.

    A node takes a second or more until it listens on its port. So a port that a process keeps is not chosen again,
    neither in this process nor in another. Raises ``OSError`` if there are not enough ports.
    """
    found: list[int] = []
    for port in random.sample(ports, len(ports)):
        if len(found) == count:
            break
        if _is_free(port) and _reserve(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"only {len(found)} of {count} ports between {ports.start} and {ports.stop - 1} are free")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _reserve(port: int) -> bool:
    """Hold the UDP port of the same number, which is otherwise unused. Return False if another process holds it."""
    reservation = socket.socket(type=socket.SOCK_DGRAM)
    try:
        reservation.bind((LOOPBACK, port))
    except OSError:
        reservation.close()
        return False
    _reserved.append(reservation)
    if len(_reserved) > RESERVED_MAX:
        _reserved.popleft().close()
    return True
