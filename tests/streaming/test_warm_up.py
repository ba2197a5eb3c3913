"""What is loaded before the claim: a late worker is followed by another one, and every wait has an end."""

import threading
import types
from typing import Any

import pytest
from py4j.protocol import Py4JError

from streaming.job_errors import JobError
from streaming.late_workers import LATE_WORKERS_MAX
from streaming.warm_up import warm_up
from tests.support.waiting import TIMEOUT_S

LATE_WORKER = "org.apache.spark.SparkException: Python worker failed to connect back."


class BusySession:
    """A session on a machine so busy that the first workers do not connect in time."""

    def __init__(self, late: int, text: str = LATE_WORKER) -> None:
        self.left = late
        self.text = text
        loader = types.SimpleNamespace(loadLibrary=lambda: None)
        org = types.SimpleNamespace(rocksdb=types.SimpleNamespace(RocksDB=loader))
        self.sparkContext = types.SimpleNamespace(_jvm=types.SimpleNamespace(org=org))

    def range(self, count: int) -> "BusySession":
        return self

    def mapInArrow(self, call: object, schema: str) -> "BusySession":
        return self

    def collect(self) -> None:
        if self.left:
            self.left -= 1
            raise Py4JError(self.text)


def test_a_worker_that_is_late_before_the_claim_is_followed_by_another() -> None:
    busy: Any = BusySession(LATE_WORKERS_MAX)
    warm_up(busy)
    assert busy.left == 0


@pytest.mark.parametrize(("late", "text"), [(LATE_WORKERS_MAX + 1, LATE_WORKER), (1, "another error")])
def test_workers_that_are_always_late_and_other_errors_are_raised(late: int, text: str) -> None:
    busy: Any = BusySession(late, text)
    with pytest.raises(Py4JError, match=text):
        warm_up(busy)
    assert busy.left == 0


class SilentSession(BusySession):
    """A session whose workers connect and then do nothing."""

    def __init__(self) -> None:
        super().__init__(late=0)
        self.cancelled = threading.Event()
        self.sparkContext.cancelAllJobs = self.cancelled.set

    def collect(self) -> None:
        assert self.cancelled.wait(TIMEOUT_S)
        raise Py4JError("Job 0 cancelled as part of cancellation of all jobs")


def test_a_worker_that_does_not_answer_is_not_waited_for_without_an_end() -> None:
    silent: Any = SilentSession()
    with pytest.raises(JobError, match="no Python worker of Spark's answered in 0 s"):
        warm_up(silent, timeout_s=0.05)
