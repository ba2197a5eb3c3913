"""Events about partitions of many topics, and the report on one replica."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from state.canonical import RESULTS_MAX
from state.event import Event, OfReplica
from state.ids import EPOCH_DURING_DELETE, topic_hash
from state.limits import BrokerEpoch, Epoch, Id, Ids, Offset, Text
from state.topic_name import NAME_LENGTH_MAX

_TopicName = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
ReportedEpoch = Annotated[int, Meta(ge=EPOCH_DURING_DELETE, le=2**31 - 1)]
ReportedOutcome = Literal["leader", "follower", "stopped", "deleted", "offline", "error"]


class NamedTopic(Protocol):
    """The part of such an event about one topic."""

    @property
    def topic(self) -> str: ...
    @property
    def partitions(self) -> Sequence[object]: ...


class OfTopics(Event, frozen=True, kw_only=True, dict=True):
    """An event with ``topics``, each with rows about its partitions.

    Every shard reads the whole event, which may name tens of thousands of topics. What all shards need of it is
    computed once, for the first that asks.
    """

    if TYPE_CHECKING:

        @property
        def topics(self) -> Sequence[NamedTopic]: ...

    @cached_property
    def rows(self) -> int:
        """How many rows all topics have together."""
        return sum([len(named.partitions) for named in self.topics])

    @cached_property
    def names_twice(self) -> bool:
        """Whether a topic is named more than once."""
        return len({named.topic for named in self.topics}) < len(self.topics)

    @cached_property
    def _by_shard(self) -> dict[int, defaultdict[int, list[int]]]:
        return {}

    def places_in(self, shard: int, shards: int) -> Sequence[int]:
        """Return the places of the topics that ``shard`` of ``shards`` holds."""
        found = self._by_shard.get(shards)
        if found is None:
            found = self._by_shard[shards] = defaultdict(list)
            for place, named in enumerate(self.topics):
                found[topic_hash(named.topic) % shards].append(place)
        return found.get(shard, ())


class IsrRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The ISR of one partition, as a JSON array of these values in this order. The last two may be left out."""

    partition: Id
    leader_epoch: Epoch
    partition_epoch: Epoch
    isr: Ids
    # The broker epoch of each member (KIP-903).
    isr_epochs: Annotated[tuple[BrokerEpoch, ...], Meta(max_length=1_000)] | None = None
    leader_recovery_state: Literal["RECOVERED", "RECOVERING", 0, 1] | None = None


class TopicIsrs(msgspec.Struct, frozen=True):
    """The partitions of one topic in a leader's request."""

    topic: _TopicName
    partitions: Annotated[tuple[IsrRow, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
    # If given, the event is about that topic and no other of the same name.
    topic_id: Text | None = None


class AlterIsrs(OfTopics, frozen=True, kw_only=True, tag="alter_isrs"):
    """A leader asks for other ISRs of many partitions at once: a whole AlterPartition request (KIP-497)."""

    broker: Id
    broker_epoch: BrokerEpoch
    # Each topic once. Together they have at most as many rows as an answer has results.
    topics: Annotated[tuple[TopicIsrs, ...], Meta(min_length=1, max_length=RESULTS_MAX)]


class LogEndRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the log of one replica ends, as a JSON array of these values in this order."""

    partition: Id
    leader_epoch: Epoch
    log_end_offset: Offset


class TopicLogEnds(msgspec.Struct, frozen=True):
    """The replicas of one topic in a broker's report."""

    topic: _TopicName
    partitions: Annotated[tuple[LogEndRow, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
    # If given, the event is about that topic and no other of the same name.
    topic_id: Text | None = None


class LogEndOffsets(OfTopics, frozen=True, kw_only=True, tag="log_end_offsets"):
    """A broker reports where the logs of many of its replicas end, each in the leader epoch that it follows."""

    broker: Id
    broker_epoch: BrokerEpoch
    # Together they have at most as many rows as an answer has results.
    topics: Annotated[tuple[TopicLogEnds, ...], Meta(min_length=1, max_length=RESULTS_MAX)]


class ReplicaLog(OfReplica, frozen=True, kw_only=True, tag="replica_log"):
    """A broker reports the log of a replica that follows no leader: as the broker starts, and once none is left."""

    broker_epoch: BrokerEpoch
    # The leader epoch of the last record; -1 without a record.
    last_written_epoch: Annotated[int, Meta(ge=-1, le=2**31 - 1)]
    log_end_offset: Offset
    # The greatest high watermark that the broker has stored.
    high_watermark: Offset
    # The log directory in which the log is.
    directory: Text | None = None


class ReplicaReport(OfReplica, frozen=True, kw_only=True, tag="replica_report"):
    """A broker reports what became of a decision about one of its replicas."""

    broker_epoch: BrokerEpoch
    leader_epoch: ReportedEpoch
    outcome: ReportedOutcome
    error: Text | None = None


class ReportRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of a decision about one replica, as a JSON array of these values. The last one may be left out."""

    partition: Id
    leader_epoch: ReportedEpoch
    outcome: ReportedOutcome
    error: Text | None = None


class TopicReports(msgspec.Struct, frozen=True):
    """The replicas of one topic in a broker's report."""

    topic: _TopicName
    partitions: Annotated[tuple[ReportRow, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
    # If given, the event is about that topic and no other of the same name.
    topic_id: Text | None = None


class ReplicaReports(OfTopics, frozen=True, kw_only=True, tag="replica_reports"):
    """A broker reports what became of decisions about many of its replicas."""

    broker: Id
    broker_epoch: BrokerEpoch
    # Together they have at most as many rows as an answer has results.
    topics: Annotated[tuple[TopicReports, ...], Meta(min_length=1, max_length=RESULTS_MAX)]


# The report on one replica: an event, or a row that means the same.
OneReport = ReplicaReport | ReportRow
