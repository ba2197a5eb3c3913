"""Choose ports that a process finds free again when it restarts."""

import random
import socket

from brokers.launch.kafka.properties import LOOPBACK

# Systems give ports from 32768 or 49152 on to programs that ask for any, among them every client that connects.
# Such a program could get the port of a process while that process restarts.
_PORTS = range(20_000, 32_768)


def free_ports(count: int) -> list[int]:
    """Choose ports on loopback on which nobody listens at the moment, and which no system gives to clients.

    Raises ``OSError`` if there are not that many.
    """
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"only {len(found)} of {count} ports between {_PORTS.start} and {_PORTS.stop - 1} are free")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
