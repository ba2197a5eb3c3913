"""The open transaction that keeps records of a bus on Kafka from being read, and which program it belongs to.

A reader of committed records stops where the first open transaction of a partition begins. So another program's
transaction hides everything behind its beginning from the engine, until it ends or Kafka aborts it.
"""

from datetime import UTC, datetime
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError

from isrflow.kafka.address import Address
from isrflow.kafka.client_config import client_config
from isrflow.kafka.limits import REQUEST_TIMEOUT_S

# The start offset of a producer that has no open transaction.
_NONE = -1


def blocker_of(address: Address) -> str:
    """Name the open transaction that begins first among a bus's events; empty if none is open.

    The text is a part of a sentence, and ends with the command that aborts the transaction. Raises ``KafkaError``, also
    if this client may not ask.
    """
    timeout_ms = int(REQUEST_TIMEOUT_S * 1000)
    timeouts = {"bootstrap_timeout_ms": timeout_ms, "request_timeout_ms": timeout_ms}
    admin: Any = KafkaAdminClient(
        bootstrap_servers=address.servers.split(","), **timeouts, **client_config().for_kafka_python()
    )
    place = TopicPartition(address.events, 0)
    try:
        producers = admin.describe_producers([place])[place].active_producers
        by_start = {one.current_transaction_start_offset: one for one in producers}
        by_start.pop(_NONE, None)
        if not by_start:
            return ""
        start = min(by_start)
        at = f"--topic {place.topic} --partition {place.partition} --start-offset {start}"
        abort = f"kafka-transactions.sh --bootstrap-server {address.servers} abort {at}"
        whose = _named(admin, by_start[start])
        return f"an open transaction in {place.topic}-0 at offset {start} ({whose}); to abort it: {abort}"
    finally:
        admin.close()


def _named(admin: Any, producer: Any) -> str:
    """Name a producer as Kafka's tools do, and by its transactional.id, if this client may see it."""
    known = [f"producer id {producer.producer_id}", f"epoch {producer.producer_epoch}"]
    known += [f"coordinator epoch {producer.coordinator_epoch}", f"last record {_utc(producer.last_timestamp)}"]
    try:
        listed = admin.list_transactions(producer_id_filters=[producer.producer_id])
        names = [one.transactional_id for some in listed.values() for one in some]
        for name, found in admin.describe_transactions(names).items():
            known.insert(0, f"transactional.id {name!r}")
            known += [f"begun {_utc(found.transaction_start_time_ms)}", f"time-out {found.transaction_timeout_ms} ms"]
    except KafkaError as error:
        known.append(f"transactional.id not known: {error}")
    return ", ".join(known)


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
