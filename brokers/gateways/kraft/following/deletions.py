"""Report the logs that brokers delete because the metadata log tells them to.

The engine waits for a report of each deletion, and a broker of Kafka 4 sends none. But it fetches the metadata log in
order, so a fetch from beyond a record shows that the broker has read it.

Brokers fetch from the leading gateway only. The other gateways hear of all deletions too, but no decision says that the
engine has taken the report of a replica that was moved away. So a gateway that begins to lead compares the deletions it
has heard of with the committed state, and drops those that are over. Otherwise it would report every replica that was
moved since it started, and the engine would reject each report. It does the same whenever it has heard of many, so that
a gateway that never leads does not collect them without bound.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import structlog

from brokers.gateways.shared.event_queue import QueueFullError
from bus.clock import now_ms
from bus.image import HeldState
from state.decisions import AnyDecision, BrokerDecision, Rejected, StopReplica, TopicDecision
from state.event_text import decode
from state.events import ReplicaReport
from state.ids import EPOCH_DURING_DELETE
from state.partition import ReplicaState
from state.reason import Reason

logger = structlog.get_logger()

# The state is read again after this many deletions, or after as many as were under way in it, whichever is more.
HEARD_MAX = 10_000
_STARTED = ReplicaState.ReplicaDeletionStarted


class Doomed(NamedTuple):
    """A log that is to be deleted."""

    topic_id: str
    leader_epoch: int
    # A broker that fetches from here or beyond has read the record of the deletion.
    log_end: int


class UnderWay(NamedTuple):
    """A log that a broker has been told to delete, and the leader epoch that its report must have."""

    broker: int
    topic: str
    partition: int
    topic_id: str
    leader_epoch: int


# By broker, topic and partition.
_Logs = dict[int, dict[str, dict[int, Doomed]]]


class Deletions:
    """The deletions whose records brokers have yet to read, the newest for each log. ``tell`` publishes the reports.

    The engine refuses reports while this gateway's clock is far ahead. They wait for ``retry_refused``.
    """

    def __init__(self, tell: Callable[[ReplicaReport], None]) -> None:
        self._tell = tell
        self._awaited: _Logs = {}
        # The deletions that were set aside. They may be over. ``unsettled`` is set when ``settle`` is due.
        self._former: _Logs = {}
        self.unsettled = asyncio.Event()
        # How many deletions were heard of since the last ``settle``, and how many were under way then.
        self._heard = self._under_way = 0
        # The newest report of each log that was published since the last ``retry_refused``, and in the time before it.
        # The engine has decided any that is older.
        self._reported: _Logs = {}
        self._reported_before: _Logs = {}
        self._refused: _Logs = {}

    def begin_from(self, held: HeldState, log_end: int) -> None:
        """Begin with the deletions under way. A broker that fetches from ``log_end`` has read their records."""
        for one in under_way(held):
            _put(self._awaited, one.broker, one.topic, one.partition, Doomed(one.topic_id, one.leader_epoch, log_end))

    def begin_to_lead(self) -> None:
        """Set aside the deletions that this gateway has heard of, until ``settle`` says which are under way."""
        self.retry_refused()
        self._set_aside()

    def _set_aside(self) -> None:
        for broker, topics in self._awaited.items():
            for topic, awaited in topics.items():
                self._former.setdefault(broker, {}).setdefault(topic, {}).update(awaited)
        self._awaited, self._heard = {}, 0
        if self._former:
            self.unsettled.set()

    def settle(self, left: Iterable[UnderWay]) -> None:
        """Await the deletions that were set aside and that are ``left`` in a state that was read since."""
        former, self._former = self._former, {}
        kept = 0
        dropped = sum(len(logs) for topics in former.values() for logs in topics.values())
        for one in left:
            doomed = former.get(one.broker, {}).get(one.topic, {}).get(one.partition)
            if doomed is not None and doomed.topic_id == one.topic_id:
                kept += 1
                # If a deletion was decided meanwhile, it is the newer one, and wins.
                self._awaited.setdefault(one.broker, {}).setdefault(one.topic, {}).setdefault(one.partition, doomed)
        self._under_way = kept
        if dropped > kept:
            logger.info("deletions that the engine knows of", count=dropped - kept)

    def apply(self, decisions: Iterable[AnyDecision], log_end: int) -> None:
        """Apply decisions whose records are in the metadata log before ``log_end``."""
        for decision in decisions:
            if isinstance(decision, StopReplica) and decision.delete:
                doomed = Doomed(decision.topic_id, decision.leader_epoch, log_end)
                for broker in decision.to:
                    _put(self._awaited, broker, decision.topic, decision.partition, doomed)
                self._heard += len(decision.to)
            elif isinstance(decision, TopicDecision) and decision.state == "deleted":
                for logs in self._all:
                    for topics in logs.values():
                        topics.pop(decision.topic, None)
            elif isinstance(decision, BrokerDecision) and decision.state == "unregistered":
                for logs in self._all:
                    logs.pop(decision.broker, None)
            elif isinstance(decision, Rejected) and decision.reason == Reason.TIME_AHEAD:
                self._keep_refused(decision)
        if self._heard > max(HEARD_MAX, self._under_way):
            self._set_aside()

    def _keep_refused(self, decision: Rejected) -> None:
        """Keep a refused report of this gateway. Other gateways repeat their own."""
        event = decode(decision.raw.encode())
        if not isinstance(event, ReplicaReport):
            return
        both = (self._reported_before, self._reported)
        found = [one.get(event.broker, {}).get(event.topic, {}).get(event.partition) for one in both]
        for reported in filter(None, found):
            if (reported.topic_id, reported.leader_epoch) == (event.topic_id, event.leader_epoch):
                _put(self._refused, event.broker, event.topic, event.partition, reported)

    def retry_refused(self) -> None:
        """Report again what was refused, at the next fetches: the engine accepts this gateway's events again."""
        for broker, topics in self._refused.items():
            for topic, refused in topics.items():
                awaited = self._awaited.setdefault(broker, {})
                # If a deletion was decided meanwhile, it is the newer one, and wins.
                awaited[topic] = refused | awaited.get(topic, {})
        self._refused.clear()
        self._reported_before, self._reported = self._reported, {}

    @property
    def _all(self) -> tuple[_Logs, ...]:
        return self._awaited, self._former, self._reported, self._reported_before, self._refused

    def has_fetched(self, broker: int, broker_epoch: int, offset: int) -> None:
        """Report the deletions that a broker read before it fetched from ``offset``. Keep what the queue refuses."""
        topics = self._awaited.get(broker, {})
        due = [
            (topic, partition, doomed)
            for topic, awaited in topics.items()
            for partition, doomed in awaited.items()
            if doomed.log_end <= offset
        ]
        for topic, partition, doomed in due:
            report = ReplicaReport(
                time_ms=now_ms(),
                topic=topic,
                topic_id=doomed.topic_id,
                partition=partition,
                broker=broker,
                broker_epoch=broker_epoch,
                leader_epoch=doomed.leader_epoch,
                outcome="deleted",
            )
            try:
                self._tell(report)
            except QueueFullError as error:
                logger.warning("deletion reports deferred", broker=broker, why=str(error))
                return
            _put(self._reported, broker, topic, partition, doomed)
            del topics[topic][partition]
            if not topics[topic]:
                del topics[topic]


def under_way(held: HeldState) -> Iterator[UnderWay]:
    """Yield the deletions that brokers have been told of, and that the engine waits for."""
    for topic in held.topics:
        is_deleting = topic.shown_state.name == "deleting"
        for partition in topic.partitions:
            epoch = EPOCH_DURING_DELETE if is_deleting else partition.leader_epoch
            states = zip(partition.replicas, partition.replica_states, strict=True)
            replicas = [replica for replica, state in states if state == _STARTED]
            removed = [one.broker for one in partition.removed if one.state == _STARTED]
            for broker in (*replicas, *removed):
                yield UnderWay(broker, topic.topic, partition.partition, topic.topic_id, epoch)


def _put(logs: _Logs, broker: int, topic: str, partition: int, doomed: Doomed) -> None:
    logs.setdefault(broker, {}).setdefault(topic, {})[partition] = doomed
