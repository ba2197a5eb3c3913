"""Run the engine's job, and kill it with its JVM at a chosen point of a micro-batch, once a file tells it to.

The points lie between the writes of Spark and the sink:

* ``offsets``: the offset log is written, nothing was read (not on Kafka)
* ``state``: some shards have stored their state, none has committed it
* ``output``: the state is committed, the decisions are not
* ``transaction``: the decisions are on their topic, their transaction is not committed (only on Kafka)
* ``commit``: the decisions are committed, Spark's commit log is not written
* ``next``: Spark's commit log is written (not on Kafka)

The test makes the file. The next batch that comes to the point is killed.
"""

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cli import main
from sinks.decision_log import DecisionLog, WrittenBatch
from streaming import query, shard
from streaming.sources import embedded

JOB_PID = os.getpid()
# Sources and operators run in other processes, which see the file too.
POINT, ARMED = sys.argv[1], Path(sys.argv[2])
SHARD = 7


def come_to(point: str) -> None:
    if point == POINT and ARMED.exists():
        os.killpg(JOB_PID, signal.SIGKILL)
        os._exit(1)


class CrashingReader(embedded.BusReader):
    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Any:
        come_to("offsets")
        return super().partitions(start, end)

    def commit(self, end: dict[str, int]) -> None:
        come_to("next")
        super().commit(end)


class CrashingSource(embedded.BusSource):
    def streamReader(self, schema: Any) -> CrashingReader:
        return CrashingReader(self.options)


class CrashingOperator(shard.ShardOperator):
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        yield from super().handleInputRows(key, rows, timerValues)
        if key[0] == SHARD:
            come_to("state")


class CrashingLog(DecisionLog):
    def write(self, outcomes: Iterable[bytes]) -> WrittenBatch | None:
        come_to("output")
        written = super().write(outcomes)
        come_to("commit")
        return written


def crash_in_transactions() -> None:
    from bus.kafka.mark import Mark
    from bus.kafka.transaction import Transaction

    written = Transaction.write_decisions

    def crashing(transaction: Transaction, before: Mark, decisions: Sequence[Any]) -> Mark:
        mark = written(transaction, before, decisions)
        if decisions:
            come_to("transaction")
        return mark

    Transaction.write_decisions = crashing  # type: ignore[method-assign]


if __name__ == "__main__":
    from streaming import batch_writer

    batch_writer.DecisionLog = CrashingLog  # type: ignore[misc]
    embedded.BusSource = CrashingSource  # type: ignore[misc]
    query.shard.ShardOperator = CrashingOperator  # type: ignore[misc]
    if POINT == "transaction":
        crash_in_transactions()
    sys.argv = ["isrflow", "run", *sys.argv[3:]]
    main()
