"""One transaction of the job that decides: records on several topics, all of them or none."""

import time
from collections.abc import Sequence

import msgspec
from confluent_kafka import KafkaException, Producer

from bus.interface import Decided
from bus.kafka.connection import REQUEST_TIMEOUT_S, TRANSACTION_TIMEOUT_MS, is_fenced
from bus.kafka.delivery_reports import DeliveryReports
from bus.kafka.mark import Mark
from bus.kafka.sending import Headers, flush, send
from isrflow.kafka.address import Address
from isrflow.kafka.records import DECISION_KEY, PREVIOUS


class Transaction:
    """What a producer writes from now until ``end``. Every method raises ``KafkaException`` or ``BusError``."""

    def __init__(self, producer: Producer, address: Address) -> None:
        self.producer = producer
        self._address = address
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
        send(self.producer, self._address, topic, key, value, headers=headers, reports=reports)

    def write_decisions(self, before: Mark, decisions: Sequence[Decided]) -> Mark:
        """Write the decisions that come after ``before``, and return the mark after them."""
        if not decisions:
            return before
        reports = DeliveryReports()
        last = before.last_decision
        for decided in decisions:
            headers: Headers = {PREVIOUS: DECISION_KEY.pack(*last)}
            last = (decided.seq, decided.idx)
            self.write(self._address.decisions, DECISION_KEY.pack(*last), decided.body, headers, reports)
        # The mark contains the offset after the decisions, so they must be written first.
        self.flush()
        return msgspec.structs.replace(before, last_decision=last, decisions_end=reports.last_offset() + 1)

    def flush(self) -> None:
        """Wait until everything is written."""
        flush(self.producer, self._address)

    def end(self) -> None:
        """Commit. Abort what cannot be committed."""
        self.flush()
        deadline = time.monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        while True:
            try:
                self.producer.commit_transaction(REQUEST_TIMEOUT_S)
                return
            except KafkaException as error:
                if error.args[0].retriable() and time.monotonic() < deadline:
                    continue
                if error.args[0].txn_requires_abort() and not is_fenced(error.args[0]):
                    self.producer.abort_transaction(REQUEST_TIMEOUT_S)
                raise
