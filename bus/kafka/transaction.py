"""One transaction of the job that decides: records on several topics, all of them or none."""

import contextlib
import time
from collections.abc import Iterator, Sequence

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from bus.decided_runs import DecidedRuns
from bus.interface import BusError, Decided
from bus.kafka.connection import TRANSACTION_TIMEOUT_MS, Connection, is_fenced
from bus.kafka.mark import Mark
from bus.kafka.sending import DeliveryReports, Headers, Sender, fatal_errors
from isrflow import decision_blocks
from isrflow.kafka.limits import REQUEST_TIMEOUT_S
from isrflow.kafka.records import DECISION_KEY, PREVIOUS
from isrflow.warning import warn
from state.numbered_run import NumberedRun

# Short, because a job whose bus has failed waits for it before it ends.
ABORT_TIMEOUT_S = 5.0
# A commit has blocks if this many of its decisions could be in one. So a program that follows a small cluster with any
# Kafka client hardly ever meets a block.
BLOCKS_COMMIT_MIN = 1_000


class Transaction(Sender):
    """What a producer writes from now until ``end``."""

    def __init__(self, producer: Producer, connection: Connection) -> None:
        super().__init__(producer, connection)
        try:
            producer.begin_transaction()
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                raise
            # The abort of the transaction before this one had no answer in time.
            producer.abort_transaction(ABORT_TIMEOUT_S)
            producer.begin_transaction()

    def write_decisions(self, before: Mark, rows: Sequence[Decided]) -> Mark:
        """Write the decisions that come after ``before``, or blocks of them, and return the mark after them."""
        if not rows:
            return before
        reports = DeliveryReports()
        last = before.last_decision
        for row in rows:
            headers: Headers = {PREVIOUS: DECISION_KEY.pack(*last)}
            self.write(self._address.decisions, DECISION_KEY.pack(row.seq, row.idx), row.body, headers, reports=reports)
            last = decision_blocks.last_of(row)
        # The mark contains the offset after the decisions, so they must be written first.
        self.flush()
        return msgspec.structs.replace(before, last_decision=last, decisions_end=reports.last_offset() + 1)

    def end(self) -> None:
        """Commit."""
        self.flush()
        deadline = time.monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        while True:
            try:
                self.producer.commit_transaction(REQUEST_TIMEOUT_S)
                return
            except KafkaException as error:
                if error.args[0].retriable() and time.monotonic() < deadline:
                    continue
                raise

    def abort(self) -> None:
        """Abort. If the client cannot, only warn: readers wait until Kafka aborts the transaction."""
        try:
            with fatal_errors(self.producer, self._address):
                self.producer.abort_transaction(ABORT_TIMEOUT_S)
        except (KafkaException, KafkaError, BusError) as error:  # type: ignore[misc]
            cause = error.args[0] if isinstance(error, KafkaException) else error
            # Where another job has fenced this one, Kafka has aborted it.
            if not (isinstance(cause, KafkaError) and is_fenced(cause)):
                warn("a transaction cannot be aborted", bus=str(self._address), error=str(cause))


@contextlib.contextmanager
def transaction(producer: Producer, connection: Connection) -> Iterator[Transaction]:
    """Begin a transaction for the block, which ends it. Abort it if the block fails.

    Otherwise readers of its topics would wait until Kafka ends it or another job claims the bus.
    """
    begun = Transaction(producer, connection)
    try:
        yield begun
    except Exception:
        begun.abort()
        raise


def rows_in(runs: Sequence[NumberedRun]) -> Sequence[Decided]:
    """Turn a commit's runs into rows, in order."""
    fitting = sum(run.decisions for run in runs if run.decisions >= decision_blocks.BLOCK_DECISIONS_MIN)
    return list(decision_blocks.rows_of(runs)) if fitting >= BLOCKS_COMMIT_MIN else DecidedRuns(runs)
