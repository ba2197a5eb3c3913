"""A network of its own for a cluster: each host is a network namespace, and links between hosts can be cut."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

COMMAND_TIMEOUT_S = 60
# Reserved for tests of networks (RFC 2544), so a machine's own networks are elsewhere. Each process takes one of these.
NETWORKS = 512
FIRST_HOST = 11
BRIDGE, US = "bridge", "us"
# The ways of a rule with a packet. Dropped packets leave connections half open, refused packets end them.
DROP = ("-j", "DROP")
REFUSE = ("-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
# One of ten packets is lost.
LOSE = ("-m", "statistic", "--mode", "random", "--probability", "0.1", "-j", "DROP")
# What exceeds 40 packets a second from one host is dropped, so senders slow down to a few tens of kilobytes a second.
SLOW = ("-m", "hashlimit", "--hashlimit-name", "slow", "--hashlimit-mode", "srcip")
SLOW = (*SLOW, "--hashlimit-above", "40/sec", "--hashlimit-burst", "20", "-j", "DROP")


class Network:
    """Hosts that all reach each other, and that this process reaches, until links are cut."""

    def __init__(self, hosts: Sequence[str], number: int) -> None:
        self._prefix = f"isrflow-{os.getpid()}"
        self._ours = f"isr{os.getpid()}"
        third = f"198.{18 + number // 256}.{number % 256}"
        self._gateway = f"{third}.1"
        self.addresses = {host: f"{third}.{FIRST_HOST + place}" for place, host in enumerate(hosts)}

    def namespace(self, host: str) -> str:
        return f"{self._prefix}-{host}"

    def within(self, host: str) -> tuple[str, ...]:
        """Return the words before a command that make it run on a host."""
        return ("ip", "netns", "exec", self.namespace(host))

    def make(self) -> None:
        """Make the hosts and the links. Raises ``subprocess.CalledProcessError``."""
        bridge = self.namespace(BRIDGE)
        _ip(f"netns add {bridge}", *(f"netns add {self.namespace(host)}" for host in self.addresses))
        # The bridge is in a namespace too, so that no firewall of this machine stops its packets.
        _ip(f"-n {bridge} link add {BRIDGE} type bridge", f"-n {bridge} link set {BRIDGE} up")
        _ip(f"link add {self._ours} type veth peer name {US} netns {bridge}")
        _ip(f"-n {bridge} link set {US} master {BRIDGE} up")
        _ip(f"addr add {self._gateway}/24 dev {self._ours}", f"link set {self._ours} up")
        for host, address in self.addresses.items():
            here = self.namespace(host)
            _ip(f"link add {host} netns {bridge} type veth peer name eth0 netns {here}")
            _ip(f"-n {bridge} link set {host} master {BRIDGE} up")
            _ip(f"-n {here} addr add {address}/24 dev eth0")
            _ip(f"-n {here} link set eth0 up", f"-n {here} link set lo up")

    def remove(self) -> None:
        """Remove the parts of the network that exist."""
        with suppress(subprocess.CalledProcessError):
            _ip(f"link del {self._ours}")
        for host in (*self.addresses, BRIDGE):
            with suppress(subprocess.CalledProcessError):
                _ip(f"netns del {self.namespace(host)}")

    def cut_one_way(self, sources: Sequence[str], targets: Sequence[str], how: Sequence[str] = DROP) -> None:
        """Keep packets from ``sources`` to ``targets`` from arriving; ``how`` tells what happens to them."""
        for target in targets:
            for source in sources:
                rule = ("-A", "INPUT", "-s", self.addresses[source], *how)
                _run([*self.within(target), "iptables", "--wait", *rule])

    def cut(self, some: Sequence[str], others: Sequence[str]) -> None:
        """Cut both ways between two groups of hosts."""
        self.cut_one_way(some, others)
        self.cut_one_way(others, some)

    def heal(self) -> None:
        """Let all packets pass again."""
        for host in self.addresses:
            _run([*self.within(host), "iptables", "--wait", "-F", "INPUT"])


@contextmanager
def network(*hosts: str) -> Iterator[Network]:
    """Make a network of these hosts until the block ends; skips the test where that is not possible.

    All processes on it must have ended by then.
    """
    for program in ("ip", "iptables"):
        if shutil.which(program) is None:
            pytest.skip(f"network namespaces need the command {program}")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    made = Network(hosts, os.getpid() % NETWORKS)
    try:
        try:
            made.make()
            made.cut_one_way([hosts[0]], [hosts[-1]], LOSE)
            made.heal()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
        yield made
    finally:
        made.remove()


def is_listening(host: str, port: int) -> bool:
    """Return whether a process on a host of the network listens on a port."""
    try:
        socket.create_connection((host, port), 0.5).close()
    except OSError:
        return False
    return True


def _ip(*commands: str) -> None:
    for command in commands:
        _run(["ip", *command.split()])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
