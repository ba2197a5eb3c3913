"""The Kafka clients of one bus, with bounded waits, and with Kafka's errors turned into the bus's."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ClusterMetadata, OffsetSpec  # type: ignore[attr-defined]

from bus.interface import BusError, FencedError
from isrflow.kafka.address import Address
from isrflow.kafka.client_config import client_config
from isrflow.kafka.limits import MESSAGE_BYTES_MAX, REQUEST_TIMEOUT_S
from isrflow.kafka.topic_end import LOST_END_TIMEOUT_S, await_end

RETRY_PAUSE_S = 0.05
# Longer than it takes to write any batch, even one of hundreds of megabytes. But not much longer: if a job is killed in
# a transaction, readers wait at the transaction's start until this time is over, or until the next claim.
TRANSACTION_TIMEOUT_MS = 120_000
# How long an engine's calls wait while Kafka is away. A node that was killed registers again only when its session has
# ended, and then its JVM has yet to start.
AWAY_TIMEOUT_S = 90.0
# How long one request for offsets may take. Then it is sent again, because it may wait for a node that is gone, while
# another node leads by now.
ASK_TIMEOUT_S = 2.0
_FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
# A topic was just made or its leader has moved, and the client is about to look it up again.
_PASSING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._NOENT,  # the client knows no leader yet
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,  # the broker does not know the epoch yet
        KafkaError._TRANSPORT,
    }
)
_REFUSALS = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
# The client's log lines are dropped, because its calls report the same errors.
_silent = logging.getLogger("isrflow.bus.kafka.client")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


def is_fenced(error: KafkaError) -> bool:
    """Return whether a later producer with the same transactional id has replaced this one."""
    return error.code() in _FENCED


def is_passing(error: KafkaError) -> bool:
    """Return whether the same call may succeed a moment later."""
    return error.code() in _PASSING


def _may_pass(error: KafkaException | TimeoutError) -> bool:
    return isinstance(error, TimeoutError) or error.args[0].code() == KafkaError._TIMED_OUT or is_passing(error.args[0])


class _Refusal:
    """Why Kafka does not let a client in; empty if it does.

    Clients call it, so it refers to no client. Otherwise the two would be a cycle, which the garbage collector may free
    in a thread of librdkafka. That aborts the process.
    """

    def __init__(self) -> None:
        self.text = ""

    def note(self, error: KafkaError) -> None:
        """Keep why this client is refused. Any other error of the whole client lets calls run out of time anyway."""
        if error.code() in _REFUSALS:
            self.text = f" ({error.str()})"


class Connection:
    """The clients of one bus. Their calls wait for ``timeout_s``, or ``REQUEST_TIMEOUT_S``, while Kafka is away."""

    def __init__(self, address: Address, timeout_s: float | None = None) -> None:
        self.address = address
        self.timeout_s = REQUEST_TIMEOUT_S if timeout_s is None else timeout_s
        self._refusal = _Refusal()
        self.admin: Any = None
        # Whether the admin client has had an answer yet.
        self._is_connected = False
        self._config = client_config()
        with self.errors():
            self.admin = AdminClient(self._common(), logger=_silent)

    def _common(self) -> dict[str, Any]:
        """Return the settings of every client. They hold passwords, so they are never shown."""
        own = {"bootstrap.servers": self.address.servers, "error_cb": self._refusal.note}
        return own | self._config.for_librdkafka()

    def producer(self, **settings: Any) -> Producer:
        """Make an idempotent producer. It never splits what fits in one record batch."""
        conf = {
            "enable.idempotence": True,
            "message.max.bytes": MESSAGE_BYTES_MAX,
            "batch.size": MESSAGE_BYTES_MAX,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "message.timeout.ms": int(self.timeout_s * 1000),
        }
        with self.errors():
            return Producer(self._common() | conf | settings, logger=_silent)

    def consumer(self, **settings: Any) -> Consumer:
        """Make a consumer of committed records that belongs to no group."""
        with self.errors():
            return Consumer(
                self._common()
                | {
                    # The client requires a group, but nothing is committed to it: partitions are assigned by hand.
                    "group.id": f"{self.address.prefix}.reader",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "error",
                    "enable.partition.eof": True,
                    # A seek waits for the fetch that is under way, so fetches are short.
                    "fetch.wait.max.ms": 50,
                    "fetch.queue.backoff.ms": 10,
                    "fetch.message.max.bytes": MESSAGE_BYTES_MAX,
                    "queued.max.messages.kbytes": 65_536,
                }
                | settings,
                logger=_silent,
            )

    def start_offset(self, topic: str, partition: int = 0) -> int:
        """Return the first offset that retention has not removed."""
        return self._offset(topic, partition, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Return the offset after the last committed record."""
        return self._offset(topic, partition, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def delete_records(self, before: TopicPartition) -> None:
        """Delete the records of a partition before an offset."""
        with self.errors():
            self.admin.delete_records([before], request_timeout=REQUEST_TIMEOUT_S)[before].result(REQUEST_TIMEOUT_S + 1)

    def offset_since(self, topic: str, time_ms: int) -> int | None:
        """Return the first offset that is left with a timestamp of ``time_ms`` or later; None if there is none."""
        offset = self._offset(topic, 0, OffsetSpec.for_timestamp(time_ms))
        return None if offset < 0 else offset

    def written_offset(self, topic: str, partition: int = 0) -> int:
        """Return the offset after the last written record, committed or not."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return self._offset(topic, partition, latest, IsolationLevel.READ_UNCOMMITTED)

    def await_committed(self, topic: str) -> int:
        """Return the offset after what is written now, once all of it is committed or aborted. Raises ``BusError``."""
        end = self.written_offset(topic)
        deadline = time.monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        while self.end_offset(topic) < end:
            if time.monotonic() > deadline:
                raise BusError(f"bus {self.address}: a transaction on {topic} does not end")
            time.sleep(RETRY_PAUSE_S)
        return end

    def check_written(self, topic: str, offset: int) -> None:
        """Raise ``BusError`` if a topic, which once was as long as ``offset``, stays shorter."""
        was = f"was written up to offset {offset}"
        self.await_end(topic, offset, self.written_offset, timeout_s=LOST_END_TIMEOUT_S, was=was)

    def await_end(self, topic: str, least: int, end_of: Callable[[str], int], *, timeout_s: float, was: str) -> int:
        """Return the end of a topic as ``isrflow.kafka.topic_end`` does."""
        return await_end(self.address, topic, least, end_of, self.look_up, timeout_s=timeout_s, was=was)

    def _offset(
        self,
        topic: str,
        partition: int,
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> int:
        if not self._is_connected:
            # A client that looks for the topic's leader before it is connected looks again only after 3 s.
            self.look_up(topic)
        deadline = time.monotonic() + self.timeout_s
        with self.errors():
            while True:
                try:
                    return self.ask_offset(TopicPartition(topic, partition), spec, isolation)
                except (KafkaException, TimeoutError) as error:
                    if not _may_pass(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(RETRY_PAUSE_S)
                # The next attempt says what is wrong.
                with contextlib.suppress(BusError):
                    self.look_up(topic)

    def look_up(self, topic: str) -> None:
        """Ask Kafka again who leads a topic.

        Otherwise the client may keep an old leader epoch, or no leader at all, for a long time.
        """
        self.list_topics(topic)

    def list_topics(self, topic: str | None = None) -> ClusterMetadata:
        """Ask Kafka for a topic, or for all."""
        with self.errors():
            listed: ClusterMetadata = self.admin.list_topics(topic, timeout=REQUEST_TIMEOUT_S)
        self._is_connected = True
        return listed

    def ask_offset(self, place: TopicPartition, spec: OffsetSpec, isolation: IsolationLevel) -> int:
        """Ask once for an offset. Raises ``TimeoutError`` or ``KafkaException``."""
        asked = self.admin.list_offsets({place: spec}, isolation_level=isolation, request_timeout=ASK_TIMEOUT_S)
        offset = int(asked[place].result(ASK_TIMEOUT_S + 1).offset)
        if offset == OFFSET_INVALID:
            # If the connection breaks, as when a node is killed, Kafka's client reports this in place of an error.
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "the connection broke"))
        self._refusal.text = ""
        return offset

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn Kafka's errors into ``BusError``, or ``FencedError`` for a replaced producer; both name the bus."""
        try:
            yield
        except (KafkaException, KafkaError) as error:  # type: ignore[misc]
            # A fatal error is not wrapped, and any call may raise it.
            cause = error.args[0] if isinstance(error, KafkaException) else error
            kind = FencedError if is_fenced(cause) else BusError
            raise kind(f"bus {self.address}: {cause.str()}{self._why_refused()}") from error
        except TimeoutError as error:
            raise BusError(f"bus {self.address}: no answer in {self.timeout_s:.0f} s{self._why_refused()}") from error

    def _why_refused(self) -> str:
        if self.admin is not None:
            # The client reports what it has noted only when it is polled.
            self.admin.poll(0)
        return self._refusal.text
