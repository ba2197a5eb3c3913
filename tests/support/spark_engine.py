"""The engine as users run it, with the interface of ``RulesEngine``."""

from pathlib import Path

from bus.embedded import EmbeddedBus
from tests.support.engine import Engine


class SparkEngine:
    """The Spark job as a process of its own; its output goes beside the bus."""

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def start(self, path: Path, **settings: object) -> None:
        """Start the job under ``settings`` (Kafka's names, dots as underscores), and wait until it decides."""
        sets = [f"{name.replace('_', '.')}={str(value).lower()}" for name, value in settings.items()]
        self._engine = Engine(path.parent, *sets)
        bus = EmbeddedBus(path)
        try:
            self._engine.wait_ready(bus)
        finally:
            bus.close()

    def kill(self) -> None:
        """Kill the job and its JVM; ``start`` begins another."""
        if self._engine is not None:
            self._engine.kill()

    def stop(self) -> None:
        """Stop the job, its JVM and its workers cleanly."""
        if self._engine is not None:
            self._engine.stop()
