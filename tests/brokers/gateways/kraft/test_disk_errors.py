"""A gateway whose disk has errors while it serves: it ends, and another one leads."""

import asyncio
import contextlib
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from brokers.wire.errors import ErrorCode
from tests.brokers.gateways.kraft.storages import BEGINNING, commit_next, follow, opened, topic
from tests.support.decided_bus import DecidedBus
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import TIMEOUT_S, wait_until

QUICK = {"gateway_heartbeat_interval_ms": 50}
MESSAGE = os.strerror(errno.EIO)


def fail(patch: pytest.MonkeyPatch, name: str, path: Path) -> None:
    """Let a function of ``os`` fail for each descriptor of a file under ``path``."""
    real = getattr(os, name)

    def failing(descriptor: int, *given: Any) -> Any:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(path)):
            raise OSError(errno.EIO, MESSAGE)
        return real(descriptor, *given)

    patch.setattr(os, name, failing)


def test_a_gateway_that_cannot_read_its_log_ends_and_another_one_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum = InProcessQuorum(tmp_path, 2, **QUICK)
    client = quorum.client(100)
    try:
        quorum.join(client, 1)
        fail(monkeypatch, "pread", tmp_path / "gateway-100")
        with contextlib.suppress(ConnectionError):
            assert client.fetch(0, 1)["ErrorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR
        wait_until(lambda: quorum.gateways[100].has_ended, "the gateway to end")
        with pytest.raises(BaseExceptionGroup) as ended:
            quorum.gateways[100].stop()
        assert ended.group_contains(OSError, match=MESSAGE)
        wait_until(lambda: quorum.state.voter == 101, "the other to lead")
    finally:
        client.close()
        del quorum.gateways[100]
        quorum.stop()


@pytest.mark.parametrize("failing", ["fsync", "write"])
def test_an_error_while_the_last_decision_is_noted_ends_the_gateway(
    decided: DecidedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    decided.take([*BEGINNING, b"no event"])
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    decided.take([topic("t")])
    fail(monkeypatch, failing, tmp_path / "log")

    async def asked() -> None:
        with pytest.raises(OSError, match=MESSAGE):
            await storage.files()
        monkeypatch.undo()
        with pytest.raises(OSError, match=MESSAGE):
            await asyncio.wait_for(storage.failure.raised(), TIMEOUT_S)
        with pytest.raises(OSError, match=MESSAGE):
            await commit_next(storage, decided.bus)

    asyncio.run(asked())
    storage.close()


def test_too_many_open_files_do_not_end_the_gateway(
    decided: DecidedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided.take(BEGINNING)
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    [(name, _), *_] = asyncio.run(storage.files())

    def refused(*given: Any) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
        storage.read_file(name, 0, 100)
    monkeypatch.undo()
    storage.failure.check()
    storage.close()
