"""Note where the logs of many replicas of a broker end, as reported in one event.

Each row counts as a ``log_end_offset`` of its own would, and rows about one partition count in their order. Every shard
takes the rows of its own topics.

All brokers report at nearly the same time, and each partition has several replicas. So reports that follow each other
are gathered and settled together, before any other event (``settle_log_ends``). They are settled topic by topic, and
each partition is changed once. One topic's partitions and rows fit into the processor's caches; a shard's ten thousand
partitions do not.

    reports, in the order of the log      settled in the order of topics
    broker 1: a b c                       a: broker 1, 2, 3
    broker 2: a b c                       b: broker 1, 2, 3
    broker 3: a b c                       c: broker 1, 2, 3

The refused rows of a report are named in one answer. A report without refused rows is answered only if it asks for
an answer.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from controller_logic import fencing
from controller_logic.batch import Batch, LogEndReport
from controller_logic.commit_reports import commit_log_ends
from controller_logic.fencing import Refusal
from controller_logic.lag import LogEnd, with_log_ends
from controller_logic.partition_results import answer_by_partition, result_of
from controller_logic.watermark import noting_a_shorter_log
from controller_logic.working_topic import WorkingTopic
from state.canonical import RESULTS_MAX
from state.decisions import PartitionResult
from state.events import LogEndOffsets
from state.partition import Partition
from state.reason import Reason
from state.topic_events import TopicLogEnds

# By number: a partition, and the log ends reported of it.
_Gathered = dict[int, tuple[Partition, list[LogEnd]]]
# A partition that is not there.
_NOTHING: tuple[None, list[LogEnd]] = (None, [])


def log_end_offsets(batch: Batch, event: LogEndOffsets) -> None:
    """Gather where the logs of a broker's replicas end. The next tick decides what follows from it."""
    if event.rows > RESULTS_MAX:
        message = f"report at most {RESULTS_MAX} log ends, not {event.rows}"
        batch.recorder.reject("topics", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("INVALID_REQUEST", message)
        return
    broker = fencing.registered_broker(batch, event.broker)
    if broker is not None:
        is_current = event.broker_epoch == broker.broker_epoch
        batch.gather_log_ends(event, is_current)


def settle_log_ends(batch: Batch) -> None:
    """Commit and answer the reports that were gathered. Call this before another event begins."""
    reports = batch.take_log_ends()
    refused: defaultdict[int, list[PartitionResult]] = defaultdict(list)
    for rows_about_it in _by_topic(batch, reports):
        gathered: _Gathered = {}
        for rows in rows_about_it:
            refused[rows.report.logged.seq] += _refused(batch, rows, gathered)
        _commit(batch, rows_about_it[0].named.topic, gathered)
    for report in reports:
        results = refused[report.logged.seq]
        if results or report.event.request_id is not None:
            answer_by_partition(batch, results, part=bool(results), of=report.logged)


class _Rows(NamedTuple):
    """The rows of a report about one topic."""

    report: LogEndReport
    named: TopicLogEnds


def _by_topic(batch: Batch, reports: Iterable[LogEndReport]) -> Iterable[list[_Rows]]:
    """Return the rows about each topic of this shard, in the order of the reports."""
    cluster = batch.state.cluster
    found: defaultdict[str, list[_Rows]] = defaultdict(list)
    for report in reports:
        topics = report.event.topics
        for place in report.event.places_in(cluster.shard, cluster.shards):
            found[topics[place].topic].append(_Rows(report, topics[place]))
    return found.values()


def _refused(batch: Batch, rows: _Rows, gathered: _Gathered) -> list[PartitionResult]:
    """Gather the rows of a report about one topic, and return those that are refused."""
    report, named = rows
    # A report on another topic of that name is ignored, unless it asks for an answer.
    namesake = fencing.of_another_topic(batch, named)
    if namesake is not None and report.event.request_id is None:
        return []
    topic = fencing.known_topic(batch, named)
    if isinstance(topic, Refusal):
        return [result_of(named.topic, row.partition, topic) for row in named.partitions]
    _read(topic, [row.partition for row in named.partitions], gathered)
    broker, is_current = report.event.broker, report.is_current
    refused: list[PartitionResult] = []
    for row in named.partitions:
        before, reported = gathered.get(row.partition, _NOTHING)
        if before is None or broker not in before.replicas:
            refusal = _refusal_of(topic, before, broker, row.partition)
            if refusal is not None:
                refused.append(result_of(topic.topic, row.partition, refusal))
        elif is_current and row.leader_epoch == before.leader_epoch:
            reported.append((before.replicas.index(broker), row.log_end_offset))
    return refused


def _read(topic: WorkingTopic, numbers: Sequence[int], gathered: _Gathered) -> None:
    """Add the partitions with these numbers to what was gathered, if they are not there and exist."""
    new = [number for number in numbers if number not in gathered]
    for number, found in zip(new, topic.partitions.some(new), strict=True):
        if found is not None:
            gathered[number] = (found, [])


def _refusal_of(topic: WorkingTopic, partition: Partition | None, broker: int, number: int) -> Refusal | None:
    """Refuse a report on a replica that is not there; return None if it was removed lately."""
    if partition is None:
        return fencing.no_partition(topic, number)
    if any(entry.broker == broker for entry in partition.removed):
        return None
    return fencing.holds_no_replica(broker, topic.topic, number)


def _commit(batch: Batch, name: str, gathered: _Gathered) -> None:
    now_ms = batch.state.now_ms
    changed = {number: _noted(before, reported, now_ms) for number, (before, reported) in gathered.items() if reported}
    topic = batch.state.topic(name)
    if changed and topic is not None:
        commit_log_ends(batch, topic, changed)


def _noted(before: Partition, reported: Sequence[LogEnd], now_ms: int) -> Partition:
    after = with_log_ends(before, reported, now_ms)
    # No log is shorter than nothing.
    if after.high_watermark and after.high_watermark_epoch != after.leader_epoch:
        for place, offset in reported:
            after = noting_a_shorter_log(after, before.replicas[place], offset)
    return after
