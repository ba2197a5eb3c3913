"""Count Python workers that connect to Spark too late, because the machine is busy. Another start then helps.

Spark waits 10 s for a worker, and no setting changes that.
"""

# Attempts need no pause between them, because Spark has waited 10 s for the worker in each.
LATE_WORKERS_MAX = 10
# Parts of Spark's two messages. Spark puts the time-out after the second one.
_LATE_WORKER = ("Python worker failed to connect back", "waiting for the Python worker to connect back")


class LateWorkers:
    """The count of workers in a row that were too slow."""

    def __init__(self) -> None:
        self.count = 0

    def allow_another_start(self, text: str) -> bool:
        """Return whether the error ``text`` is worth another start, and count it if a late worker caused it."""
        if not any(sign in text for sign in _LATE_WORKER):
            return False
        self.count += 1
        return self.count <= LATE_WORKERS_MAX

    def reset(self) -> None:
        """Count from zero again, because a start has succeeded."""
        self.count = 0
