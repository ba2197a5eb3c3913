"""A broker's report of where the logs of many of its replicas end."""

from typing import Annotated

import msgspec
from msgspec import Meta

from state.canonical import RESULTS_MAX
from state.limits import BrokerEpoch, Epoch, Id, Offset, Text
from state.topic_events import OfTopics
from state.topic_name import NAME_LENGTH_MAX


class LogEndRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the log of one replica ends, as a JSON array of these values in this order."""

    partition: Id
    leader_epoch: Epoch
    log_end_offset: Offset


class TopicLogEnds(msgspec.Struct, frozen=True):
    """The replicas of one topic in a broker's report."""

    topic: Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
    partitions: Annotated[tuple[LogEndRow, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
    # If given, the rows are about that topic and no other of the same name.
    topic_id: Text | None = None


class LogEndOffsets(OfTopics, frozen=True, kw_only=True, tag="log_end_offsets"):
    """A broker reports where the logs of many of its replicas end, each in the leader epoch that it follows."""

    broker: Id
    broker_epoch: BrokerEpoch
    # Together they have at most as many rows as an answer has results.
    topics: Annotated[tuple[TopicLogEnds, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
