"""Note where the logs of many of a broker's replicas end, reported in one event.

Each row counts as a ``log_end_offset`` of its own would, and rows about one partition count in their order. Every shard
takes the rows of its own topics. A topic is looked up once, its rows are gone through, and what came of them is
committed together.

Rows that are refused are named in one answer. A report that nothing is refused of is answered only if it asks for that.
"""

from collections.abc import Sequence
from typing import NamedTuple

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit import commit_log_ends
from controller_logic.fencing import Refusal
from controller_logic.lag import with_log_end
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


def log_end_offsets(batch: Batch, event: LogEndOffsets) -> None:
    """Note where the logs of a broker's replicas end. The next tick decides what follows from it."""
    if fencing.of_later_rules(batch, event, LOG_ENDS_RULES):
        return
    rows = sum([len(named.partitions) for named in event.topics])
    if rows > RESULTS_MAX:
        message = f"report at most {RESULTS_MAX} log ends, not {rows}"
        batch.recorder.reject("topics", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("INVALID_REQUEST", message)
        return
    broker = fencing.registered_broker(batch, event.broker)
    if broker is None:
        return
    report = _Report(batch, event, event.broker_epoch == broker.broker_epoch)
    refused: list[PartitionResult] = []
    for named in batch.state.cluster.held_of(event.topics):
        refused += report.refused(named)
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
        if len({row.partition for row in rows}) == len(rows):
            return self._taken(topic, rows)
        return [result for row in rows for result in self._taken(topic, (row,))]

    def _taken(self, topic: WorkingTopic, rows: Sequence[LogEndRow]) -> list[PartitionResult]:
        """Commit rows about different partitions, and return those that are refused."""
        broker, now_ms = self.event.broker, self.batch.state.now_ms
        is_current = self.is_current
        refused: list[PartitionResult] = []
        changed: dict[int, Partition] = {}
        for row, before in zip(rows, topic.some([row.partition for row in rows]), strict=True):
            if before is None or broker not in before.replicas:
                refusal = _refusal_of(topic, before, broker, row.partition)
                if refusal is not None:
                    refused.append(result_of(topic.topic, row.partition, refusal))
            elif is_current and row.leader_epoch == before.leader_epoch:
                after = with_log_end(before, broker, row.log_end_offset, now_ms)
                if broker == before.leader:
                    after = noting_a_shorter_log(after, broker, row.log_end_offset)
                changed[row.partition] = after
        if changed:
            commit_log_ends(self.batch, topic, changed)
        return refused


def _refusal_of(topic: WorkingTopic, partition: Partition | None, broker: int, number: int) -> Refusal | None:
    """Refuse a report on a replica that is not there; return None if it was removed lately."""
    if partition is None:
        found = fencing.partition_of(topic, number)
        assert isinstance(found, Refusal)
        return found
    if any(entry.broker == broker for entry in partition.removed):
        return None
    return fencing.holds_no_replica(broker, topic.topic, number)
