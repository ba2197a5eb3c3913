"""The service manager hears that a process is ready."""

import socket
from pathlib import Path

import pytest

from conf.readiness import VARIABLE, ReadyOnce, tell_ready


def manager(address: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(address)
    listening.settimeout(30)
    return listening


def test_a_manager_hears_it_at_a_path_and_in_the_abstract_namespace(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    for given, bound in ((path, path), ("@isrflow-test-notify", "\0isrflow-test-notify")):
        with manager(bound) as listening:
            assert tell_ready({VARIABLE: given})
            assert listening.recv(100) == b"READY=1"


def test_without_a_manager_nothing_happens(tmp_path: Path) -> None:
    assert not tell_ready({})
    assert not tell_ready({VARIABLE: str(tmp_path / "none")})


def test_it_is_told_once_and_only_when_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    monkeypatch.setenv(VARIABLE, path)
    ready = ReadyOnce()
    # The manager is not there yet.
    ready.look(True)
    with manager(path) as listening:
        ready.look(False)
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.recv(100)
        ready.look(True)
        ready.look(True)
        assert listening.recv(100) == b"READY=1"
        with pytest.raises(BlockingIOError):
            listening.recv(100)
