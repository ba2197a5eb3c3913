"""One transaction of the job that decides: records on several topics, all of them or none."""

import contextlib
import time
from collections.abc import Iterator, Sequence

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from bus.interface import BusError, Decided
from bus.kafka.connection import TRANSACTION_TIMEOUT_MS, is_fenced
from bus.kafka.delivery_reports import DeliveryReports
from bus.kafka.mark import Mark
from bus.kafka.sending import Headers, fatal_errors, flush, send
from isrflow.decision_blocks import last_of
from isrflow.kafka.address import Address
from isrflow.kafka.limits import REQUEST_TIMEOUT_S
from isrflow.kafka.records import DECISION_KEY, PREVIOUS
from isrflow.warning import warn

# Short, because a job whose bus has failed waits for it before it ends.
ABORT_TIMEOUT_S = 5.0


class Transaction:
    """What a producer writes from now until ``end``. Every method raises ``KafkaException`` or ``BusError``."""

    def __init__(self, producer: Producer, address: Address, timeout_s: float) -> None:
        self.producer = producer
        self._timeout_s = timeout_s
        self._address = address
        try:
            producer.begin_transaction()
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                raise
            # The abort of the transaction before this one had no answer in time.
            producer.abort_transaction(ABORT_TIMEOUT_S)
            producer.begin_transaction()

    def write(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        reports: DeliveryReports | None = None,
    ) -> None:
        """Hand a record to the client, as soon as there is room for it. A record without a value deletes ``key``."""
        send(
            self.producer,
            self._address,
            topic,
            key,
            value,
            headers=headers,
            reports=reports,
            timeout_s=self._timeout_s,
        )

    def write_decisions(self, before: Mark, rows: Sequence[Decided]) -> Mark:
        """Write the decisions that come after ``before``, or blocks of them, and return the mark after them."""
        if not rows:
            return before
        reports = DeliveryReports()
        last = before.last_decision
        for row in rows:
            headers: Headers = {PREVIOUS: DECISION_KEY.pack(*last)}
            self.write(self._address.decisions, DECISION_KEY.pack(row.seq, row.idx), row.body, headers, reports=reports)
            last = last_of(row)
        # The mark contains the offset after the decisions, so they must be written first.
        self.flush()
        return msgspec.structs.replace(before, last_decision=last, decisions_end=reports.last_offset() + 1)

    def flush(self) -> None:
        """Wait until everything is written."""
        flush(self.producer, self._address, self._timeout_s)

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
        """Abort it if the client still can. Only warn if it cannot: until Kafka does it, readers wait."""
        try:
            with fatal_errors(self.producer, self._address):
                self.producer.abort_transaction(ABORT_TIMEOUT_S)
        except (KafkaException, KafkaError, BusError) as error:  # type: ignore[misc]
            cause = error.args[0] if isinstance(error, KafkaException) else error
            # Where another job has fenced this one, Kafka has aborted it.
            if not (isinstance(cause, KafkaError) and is_fenced(cause)):
                warn("a transaction cannot be aborted", bus=str(self._address), error=str(cause))


@contextlib.contextmanager
def transaction(producer: Producer, address: Address, timeout_s: float) -> Iterator[Transaction]:
    """Begin a transaction for the block, which ends it. Abort it if the block fails.

    Otherwise it would hold back everybody who reads its topics until Kafka ends it or another job claims the bus.
    """
    begun = Transaction(producer, address, timeout_s)
    try:
        yield begun
    except Exception:
        begun.abort()
        raise
