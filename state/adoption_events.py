"""What a gateway finds when it takes over a running cluster from another controller."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from state.event import AdminEvent
from state.ids import NO_EPOCH, NO_LEADER
from state.limits import Config, Ids, Name, Text

FoundEpoch = Annotated[int, Meta(ge=NO_EPOCH, le=2**31 - 1)]


class FoundPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as its former controller left it. The defaults are those of one that never had a leader."""

    # During a reassignment: first the replicas that stay or are added, then those that are removed.
    replicas: Ids
    isr: Ids = ()
    leader: Annotated[int, Meta(ge=NO_LEADER, le=2**31 - 1)] = NO_LEADER
    leader_epoch: FoundEpoch = NO_EPOCH
    partition_epoch: FoundEpoch = NO_EPOCH
    adding_replicas: Ids = ()
    removing_replicas: Ids = ()
    leader_recovery_state: Literal["RECOVERED", "RECOVERING"] = "RECOVERED"


class AdoptTopic(AdminEvent, frozen=True, kw_only=True, tag="adopt_topic"):
    """A gateway found a topic that another controller led. The topic continues unchanged."""

    topic: Name
    topic_id: Text
    # By number, from 0 on.
    partitions: Annotated[tuple[FoundPartition, ...], Meta(min_length=1, max_length=100_000)]
    config: Config = {}
