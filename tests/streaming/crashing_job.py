"""Run the engine's job, and kill it with its JVM at a chosen point of its micro-batch number N.

The points lie between the writes of Spark and the sink:

* ``offsets``: the offset log is written, nothing was read (not on Kafka)
* ``state``: some shards have stored their state, none has committed it
* ``output``: the state is committed, the decisions are not
* ``transaction``: the decisions are on their topic, their transaction is not committed (only on Kafka)
* ``commit``: the decisions are committed, Spark's commit log is not written
* ``next``: Spark's commit log is written (not on Kafka)

SIGUSR1 makes the next batch the one that is killed at ``output`` or ``commit``.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from cli import main
from sinks.decision_log import DecisionLog, Written
from streaming import query, shard
from streaming.sources import embedded

JOB_PID = os.getpid()
POINT, BATCH = sys.argv[1], int(sys.argv[2])
SHARD = 7
# The operator runs in worker processes and is created again for each batch, so it counts in a file.
COUNTED = Path(tempfile.mkstemp(prefix="isrflow-crash-")[1])


def die() -> None:
    os.killpg(JOB_PID, signal.SIGKILL)
    os._exit(1)


class CrashingReader(embedded.BusReader):
    seen = 0

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Any:
        self.seen += 1
        if POINT == "offsets" and self.seen == BATCH:
            die()
        return super().partitions(start, end)

    def commit(self, end: dict[str, int]) -> None:
        if POINT == "next" and self.seen >= BATCH:
            die()
        super().commit(end)


class CrashingSource(embedded.BusSource):
    def streamReader(self, schema: Any) -> CrashingReader:
        return CrashingReader(self.options)


class CrashingOperator(shard.ShardOperator):
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        yield from super().handleInputRows(key, rows, timerValues)
        if POINT == "state" and key[0] == SHARD and COUNTED.stat().st_size >= BATCH - 1:
            die()
        with COUNTED.open("ab") as file:
            file.write(b"." if key[0] == SHARD else b"")


class CrashingLog(DecisionLog):
    seen = 0

    def write(self, outcomes: Iterable[bytes]) -> Written | None:
        self.__class__.seen += 1
        if POINT == "output" and self.seen == BATCH:
            die()
        written = super().write(outcomes)
        if POINT == "commit" and self.seen == BATCH:
            die()
        return written


def crash_next(number: int, frame: FrameType | None) -> None:
    global BATCH
    BATCH = CrashingLog.seen + 1


def crash_in_transactions() -> None:
    from bus.kafka.mark import Mark
    from bus.kafka.transaction import Transaction

    written = Transaction.write_decisions

    def crashing(transaction: Transaction, before: Mark, decisions: Sequence[Any]) -> Mark:
        mark = written(transaction, before, decisions)
        if POINT == "transaction" and decisions and CrashingLog.seen >= BATCH:
            die()
        return mark

    Transaction.write_decisions = crashing  # type: ignore[method-assign]


if __name__ == "__main__":
    from streaming import job

    job.DecisionLog = CrashingLog  # type: ignore[misc]
    embedded.BusSource = CrashingSource  # type: ignore[misc]
    query.shard.ShardOperator = CrashingOperator  # type: ignore[misc]
    signal.signal(signal.SIGUSR1, crash_next)
    if POINT == "transaction":
        crash_in_transactions()
    sys.argv = ["isrflow", "run", *sys.argv[3:]]
    main()
