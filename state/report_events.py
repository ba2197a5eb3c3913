"""A broker's reports on decisions about its replicas: on one, or on many in one event."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from state.canonical import RESULTS_MAX
from state.event import OfReplica
from state.ids import EPOCH_DURING_DELETE
from state.limits import BrokerEpoch, Id, Text
from state.topic_events import OfTopics
from state.topic_name import NAME_LENGTH_MAX

ReportedEpoch = Annotated[int, Meta(ge=EPOCH_DURING_DELETE, le=2**31 - 1)]
ReportedOutcome = Literal["leader", "follower", "stopped", "deleted", "offline", "error"]


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

    topic: Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
    partitions: Annotated[tuple[ReportRow, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
    # If given, the rows are about that topic and no other of the same name.
    topic_id: Text | None = None


class ReplicaReports(OfTopics, frozen=True, kw_only=True, tag="replica_reports"):
    """A broker reports what became of decisions about many of its replicas."""

    broker: Id
    broker_epoch: BrokerEpoch
    # Together they have at most as many rows as an answer has results.
    topics: Annotated[tuple[TopicReports, ...], Meta(min_length=1, max_length=RESULTS_MAX)]


# The report on one replica: an event, or a row that means the same.
OneReport = ReplicaReport | ReportRow
