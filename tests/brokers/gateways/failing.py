"""The process of a gateway that fails, and its output."""

from pathlib import Path
from types import ModuleType

import pytest

from bus.embedded import EmbeddedBus


class Said:
    """What the program of a gateway says why it ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, program: ModuleType) -> None:
        self.why: list[str] = []
        monkeypatch.setattr("brokers.process.ending.logger", self)
        monkeypatch.setattr(program, "configure", lambda *how: None)

    def error(self, what: str, *, why: str) -> None:
        self.why.append(why)


def fail(monkeypatch: pytest.MonkeyPatch, gateway: type, folder: Path, error: Exception) -> None:
    """Let each gateway fail with ``error`` in nested groups, on a bus in ``folder`` that is there."""

    async def run_until_it_fails(gateway: object) -> None:
        raise ExceptionGroup("unhandled errors", [ExceptionGroup("unhandled errors", [error])])

    EmbeddedBus(folder / "bus.db").close()
    monkeypatch.setattr(gateway, "run", run_until_it_fails)
