"""What a busy machine does to Spark: a Python worker is too slow to connect, and another start helps.

Spark gives a worker 10 s, and that cannot be set.
"""

# Each attempt has cost the 10 s that Spark waits for a worker, so these need no pause between them.
LATE_WORKERS_MAX = 10
# The second sentence has the time after it.
_LATE_WORKER = ("Python worker failed to connect back", "waiting for the Python worker to connect back")


def has_late_worker(text: str) -> bool:
    """Say whether an error of Spark's says that a Python worker was too slow to connect."""
    return any(sign in text for sign in _LATE_WORKER)


class LateWorkers:
    """How many workers in a row were too slow."""

    def __init__(self) -> None:
        self.count = 0

    def allow_another_start(self, text: str) -> bool:
        """Say whether the error ``text`` is worth another start, and count it if a late worker caused it."""
        if not has_late_worker(text):
            return False
        self.count += 1
        return self.count <= LATE_WORKERS_MAX

    def begin_row(self) -> None:
        """Count from zero again, because a start has succeeded."""
        self.count = 0
