"""A decider whose queries end as a test says, without Spark."""

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bus.embedded import EmbeddedBus
from conf.settings import Settings
from streaming.checkpoint import has_batches
from streaming.decider import Decider
from streaming.job_errors import SupersededError

Commit = Callable[[Iterable[bytes]], None]


class Query:
    """A query that ends as the test says."""

    def __init__(self, checkpoint: Path, commit: Commit) -> None:
        self.checkpoint = checkpoint
        self.commit = commit
        self.began_with_batches = has_batches(checkpoint)
        self.isActive = True
        self.status = {"isTriggerActive": False}
        self.error: Exception | None = None

    def batch(self, number: int, end: int) -> None:
        for log, text in (("offsets", f'v1\n{{}}\n{{"seq":{end}}}'), ("commits", "v2")):
            (self.checkpoint / log).mkdir(parents=True, exist_ok=True)
            (self.checkpoint / log / str(number)).write_text(text)

    def fail(self, text: str) -> None:
        self.isActive, self.error = False, RuntimeError(text)

    def fail_to_commit(self) -> None:
        try:
            self.commit([])
        except Exception as error:
            self.fail(f"An exception was raised by the Python Proxy. Return Message: {error}")

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False


class Started:
    """The starter of queries, in Spark's place; ``refuse`` makes the next start fail."""

    def __init__(self, bus: EmbeddedBus, checkpoint: Path) -> None:
        self.bus, self.checkpoint = bus, checkpoint
        self.queries: list[Query] = []
        self.refuse: list[Exception] = []
        self.write_error: Exception | None = None
        self.now_s = 0.0
        self.spark_conf: dict[str, str] = {}

    def __call__(self, session: Any, bus: Any, settings: Any, overrides: Any, commit: Commit) -> Query:
        if self.refuse:
            raise self.refuse.pop(0)
        self.queries.append(Query(self.checkpoint, commit))
        return self.queries[-1]

    def write(self, outcomes: Iterable[bytes]) -> None:
        if self.write_error:
            raise self.write_error

    def decider(self) -> Decider:
        session: Any = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: self.spark_conf))
        settings = Settings(bus=f"sqlite:{self.bus.path}", checkpoint_dir=str(self.checkpoint))
        return Decider(session, self.bus, settings, self.write, self.check_held, lambda: self.now_s)

    def check_held(self) -> None:
        if (claimed := self.bus.claimed_epoch()) != 1:
            raise SupersededError(f"epoch {claimed} was claimed")
