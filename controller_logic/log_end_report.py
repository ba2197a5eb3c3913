"""Note where the logs of many of a broker's replicas end, reported in one event.

Each row counts as a ``log_end_offset`` of its own would, and rows about one partition count in their order. Every shard
takes the rows of its own topics.

All brokers report at nearly the same time, and each partition has several replicas. So what reports that follow each
other say of a partition is gathered, and the partition is changed once, before any other event (``settle_log_ends``).

Rows that are refused are named in one answer. A report that nothing is refused of is answered only if it asks for that.
"""

from collections.abc import Sequence
from typing import NamedTuple

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit import commit_log_ends
from controller_logic.fencing import Refusal
from controller_logic.lag import LogEnd, with_log_ends
from controller_logic.partition_results import answer_by_partition, result_of
from controller_logic.watermark import noting_a_shorter_log
from controller_logic.working_topic import WorkingTopic
from state.canonical import RESULTS_MAX
from state.decisions import PartitionResult
from state.events import LogEndOffsets
from state.log_end_events import LogEndRow, TopicLogEnds
from state.partition import Partition
from state.reason import Reason
from state.rules import LOG_ENDS_RULES

# A partition that is not there.
_NOTHING: tuple[None, list[LogEnd]] = (None, [])


def log_end_offsets(batch: Batch, event: LogEndOffsets) -> None:
    """Gather where the logs of a broker's replicas end. The next tick decides what follows from it."""
    if fencing.of_later_rules(batch, event, LOG_ENDS_RULES):
        return
    if event.rows > RESULTS_MAX:
        message = f"report at most {RESULTS_MAX} log ends, not {event.rows}"
        batch.recorder.reject("topics", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("INVALID_REQUEST", message)
        return
    broker = fencing.registered_broker(batch, event.broker)
    if broker is None:
        return
    report = _Report(batch, event, event.broker_epoch == broker.broker_epoch)
    refused: list[PartitionResult] = []
    for place in event.places_in(batch.state.cluster.shard, batch.state.cluster.shards):
        refused += report.refused(event.topics[place])
    if refused or event.request_id is not None:
        answer_by_partition(batch, refused, part=bool(refused))


class _Report(NamedTuple):
    """A report of a registered broker."""

    batch: Batch
    event: LogEndOffsets
    # Whether the broker is still registered as it was when it made the report.
    is_current: bool

    def refused(self, named: TopicLogEnds) -> list[PartitionResult]:
        """Commit the rows of one topic, and return those that are refused."""
        rows = named.partitions
        # What is said of another topic of that name is passed over.
        namesake = fencing.of_another_topic(self.batch, named)
        if namesake is not None and self.event.request_id is None:
            return []
        topic = fencing.known_topic(self.batch, named)
        if isinstance(topic, Refusal):
            return [result_of(named.topic, row.partition, topic) for row in rows]
        return self._gathered(topic, rows)

    def _gathered(self, topic: WorkingTopic, rows: Sequence[LogEndRow]) -> list[PartitionResult]:
        """Gather rows about one topic, and return those that are refused."""
        broker, is_current = self.event.broker, self.is_current
        of_topic = self.batch.log_ends.setdefault(topic.topic, {})
        new = [row.partition for row in rows if row.partition not in of_topic]
        for number, found in zip(new, topic.some(new), strict=True):
            if found is not None:
                of_topic[number] = (found, [])
        refused: list[PartitionResult] = []
        for row in rows:
            before, reported = of_topic.get(row.partition, _NOTHING)
            if before is None or broker not in before.replicas:
                refusal = _refusal_of(topic, before, broker, row.partition)
                if refusal is not None:
                    refused.append(result_of(topic.topic, row.partition, refusal))
            elif is_current and row.leader_epoch == before.leader_epoch:
                reported.append((before.replicas.index(broker), row.log_end_offset))
        return refused


def settle_log_ends(batch: Batch) -> None:
    """Commit what was gathered, at the time of the reports. Call this before another event begins."""
    now_ms = batch.state.now_ms
    for name, of_topic in batch.take_log_ends().items():
        topic = batch.state.topic(name)
        assert topic is not None, "reports delete no topic"
        changed = {
            number: _noted(before, reported, now_ms) for number, (before, reported) in of_topic.items() if reported
        }
        if changed:
            commit_log_ends(batch, topic, changed)


def _noted(before: Partition, reported: Sequence[LogEnd], now_ms: int) -> Partition:
    after = with_log_ends(before, reported, now_ms)
    # No log is shorter than nothing.
    if after.high_watermark and after.high_watermark_epoch != after.leader_epoch:
        for place, offset in reported:
            after = noting_a_shorter_log(after, before.replicas[place], offset)
    return after


def _refusal_of(topic: WorkingTopic, partition: Partition | None, broker: int, number: int) -> Refusal | None:
    """Refuse a report on a replica that is not there; return None if it was removed lately."""
    if partition is None:
        return fencing.no_partition(topic, number)
    if any(entry.broker == broker for entry in partition.removed):
        return None
    return fencing.holds_no_replica(broker, topic.topic, number)
