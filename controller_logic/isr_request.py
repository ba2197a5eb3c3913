"""Accept or refuse all ISRs that a leader asks for in one request (AlterPartition).

Each row is decided by the rule for one ISR (``isr.altered``). A storm of ISR changes has few kinds of rows, so the rule
is asked once for rows that are alike, and its effect is repeated for the others (``commit_alike``).

Every shard decides the rows of its own topics. The request is answered once, with the rows that were refused.
"""

from collections import Counter
from typing import NamedTuple

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit_alike import Alike
from controller_logic.commit_reports import commit_watermarks_due_in
from controller_logic.fencing import Refusal
from controller_logic.isr import UNKNOWN_BROKER_EPOCH, altered
from controller_logic.partition_results import answer_by_partition, result_of
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker
from state.canonical import RESULTS_MAX
from state.decisions import PartitionResult
from state.events import AlterIsrs
from state.partition import Partition
from state.topic_events import IsrRow, TopicIsrs

_TWICE = Refusal("INVALID_REQUEST", "the partition is named twice")


def alter_isrs(batch: Batch, event: AlterIsrs) -> None:
    """Commit the ISRs that a leader asks for, and answer with the rows that are refused."""
    complaint = _complaint(event)
    if complaint is not None:
        batch.recorder.answer("INVALID_REQUEST", complaint)
        return
    broker = fencing.registered_broker(batch, event.broker)
    if broker is None:
        return
    request = _Request(batch, event, broker)
    alike: Alike[Refusal | None] = Alike(batch, _alter)
    refused: list[PartitionResult] = []
    for place in event.places_in(batch.state.cluster.shard, batch.state.cluster.shards):
        refused += request.refused(event.topics[place], alike)
    answer_by_partition(batch, refused, part=bool(refused))


def _complaint(event: AlterIsrs) -> str | None:
    """Return why the request as a whole cannot be obeyed; None if it can."""
    if event.names_twice:
        return "a topic is named twice"
    return None if event.rows <= RESULTS_MAX else f"name at most {RESULTS_MAX} partitions, not {event.rows}"


class _Request(NamedTuple):
    """A request of a registered broker."""

    batch: Batch
    event: AlterIsrs
    broker: Broker

    def refused(self, named: TopicIsrs, alike: "Alike[Refusal | None]") -> list[PartitionResult]:
        """Commit the rows of one topic, and return the results of the refused ones."""
        batch, rows = self.batch, named.partitions
        numbers = [row.partition for row in rows]
        twice = _twice(numbers) if len(rows) > 1 else ()
        topic = fencing.known_topic(batch, named)
        if isinstance(topic, Refusal):
            return [result_of(named.topic, number, _TWICE if number in twice else topic) for number in numbers]
        refused = []
        found = topic.partitions.some(numbers)
        for row, before in zip(rows, found, strict=True):
            refusal: Refusal | None
            if row.partition in twice:
                refusal = _TWICE
            elif before is None:
                refusal = fencing.no_partition(topic, row.partition)
            elif self._is_current(before, row):
                refusal = alike.commit(topic, before, self, row, named=row.isr, asked=row.leader_recovery_state)
            else:
                refusal = _alter(batch, topic, before, self, row)
            if refusal is not None:
                refused.append(result_of(named.topic, row.partition, refusal))
        changed = topic.partitions.changed
        due = [one.partition for one in found if one is not None and changed.get(one.partition, one) is not one]
        if due:
            commit_watermarks_due_in(batch, topic, due)
        return refused

    def _is_current(self, partition: Partition, row: IsrRow) -> bool:
        """Return whether the rule depends on nothing but what ``Alike`` compares.

        It also depends on who asks, on the epochs if they differ, and on the reported log ends if a replica joins.
        """
        return (
            partition.leader == self.broker.broker
            and self.event.broker_epoch == self.broker.broker_epoch
            and row.leader_epoch == partition.leader_epoch
            and row.partition_epoch == partition.partition_epoch
            and (row.isr_epochs is None or self._knows(row.isr, row.isr_epochs))
            and (not partition.offset_epochs or set(row.isr).issubset(partition.isr))
        )

    def _knows(self, members: tuple[int, ...], epochs: tuple[int, ...]) -> bool:
        """Return whether these are the members' broker epochs, as far as the leader knows them."""
        if len(members) != len(epochs):
            return False
        brokers = self.batch.state.brokers
        for member, epoch in zip(members, epochs, strict=True):
            if epoch != UNKNOWN_BROKER_EPOCH and (member not in brokers or epoch != brokers[member].broker_epoch):
                return False
        return True


def _alter(batch: Batch, topic: WorkingTopic, before: Partition, request: _Request, row: IsrRow) -> Refusal | None:
    """Decide one row; return why it is refused."""
    return altered(batch, request.broker, request.event.broker_epoch, topic, before, row)[0]


def _twice(numbers: list[int]) -> set[int]:
    """Return the numbers that are there more than once."""
    if len(set(numbers)) == len(numbers):
        return set()
    return {number for number, times in Counter(numbers).items() if times > 1}
