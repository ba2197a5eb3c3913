"""A leader's request for the ISRs of many of its partitions."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from state.canonical import RESULTS_MAX
from state.limits import BrokerEpoch, Epoch, Id, Ids, Text
from state.topic_events import OfTopics
from state.topic_name import NAME_LENGTH_MAX


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

    topic: Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
    partitions: Annotated[tuple[IsrRow, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
    # If given, the rows are about that topic and no other of the same name.
    topic_id: Text | None = None


class AlterIsrs(OfTopics, frozen=True, kw_only=True, tag="alter_isrs"):
    """A leader asks for other ISRs of many partitions at once: a whole AlterPartition request (KIP-497)."""

    broker: Id
    broker_epoch: BrokerEpoch
    # Each topic once. Together they have at most as many rows as an answer has results.
    topics: Annotated[tuple[TopicIsrs, ...], Meta(min_length=1, max_length=RESULTS_MAX)]
