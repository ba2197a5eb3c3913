"""The demo's signals: the first one begins the clean-up, and no further one interrupts it."""

import contextlib
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.demo import runner

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def kill_self(*numbers: signal.Signals) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


class _Scene:
    """A demo whose story and whose clean-up get signals, and what came of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.noted: list[str] = []
        monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(directory))
        monkeypatch.setattr(runner, "MockDemoCluster", lambda directory: self._cluster())
        monkeypatch.setattr(runner, "MockStory", lambda cluster, watch: self._story())
        monkeypatch.setattr(runner, "Watch", lambda bus, topic, check, moved: None)

    def _cluster(self) -> SimpleNamespace:
        bus = SimpleNamespace(close=lambda: self.noted.append("closed"))
        return SimpleNamespace(bus=bus, check=None, moved=object, metrics_port=1, services=(), stop=self._stop)

    def _story(self) -> SimpleNamespace:
        watch = SimpleNamespace(stop=lambda: kill_self(signal.SIGHUP))
        return SimpleNamespace(opening="", watch=watch, tell=self._tell)

    def _tell(self) -> None:
        kill_self(self.first)

    def _stop(self) -> None:
        kill_self(*ENDING)
        self.noted.append("stopped")

    def play(self, first: signal.Signals) -> None:
        self.first = first
        with pytest.raises(KeyboardInterrupt):
            runner.run_demo(kafka=False, zookeeper=False, keep=False, plain=True)


@contextlib.contextmanager
def handled(noted: list[str]) -> Iterator[None]:
    """Note the signals that reach this process while no demo handles them."""
    before = {number: signal.signal(number, lambda *_: noted.append("unhandled")) for number in ENDING}
    try:
        yield
        assert all(signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL) for number in ENDING)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def kafka_logger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take back what the demo does to the logger of Kafka's clients."""
    logger = logging.getLogger("kafka")
    monkeypatch.setattr(logger, "propagate", logger.propagate)
    monkeypatch.setattr(logger, "handlers", [])
    yield
    for handler in logger.handlers:
        handler.close()


def test_a_reader_of_the_first_line_alone_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(text: str) -> None:
        raise BrokenPipeError

    scene = _Scene(monkeypatch, tmp_path / "demo")
    (tmp_path / "demo").mkdir()
    monkeypatch.setattr("click.echo", left)
    with handled(scene.noted), pytest.raises(BrokenPipeError):
        runner.run_demo(kafka=False, zookeeper=False, keep=False, plain=True)
    assert scene.noted[-2:] == ["stopped", "closed"]
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("first", ENDING)
def test_the_clean_up_is_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: signal.Signals
) -> None:
    scene = _Scene(monkeypatch, tmp_path / "demo")
    (tmp_path / "demo").mkdir()
    with handled(scene.noted):
        scene.play(first)
    assert scene.noted == ["stopped", "closed"]
    assert not (tmp_path / "demo").exists()
