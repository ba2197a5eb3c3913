"""What a cluster's own controller did, as read from its metadata log (``__cluster_metadata``).

On the bus of a shadow these are the only events besides the engine's own. One event is one operation of the observed
controller, or a part of a large one: where in the log it stands, why it was done as far as the log shows, and what it
led to.
"""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from state.event import Event
from state.ids import NO_LEADER
from state.limits import BrokerEpoch, Epoch, Id, Ids, Name, Offset, Text, Texts, TimeMs

# The most rows of one kind in an event. A larger operation comes in parts.
ROWS_MAX = 10_000
ObservedLeader = Annotated[int, Meta(ge=NO_LEADER, le=2**31 - 1)]
_Level = Annotated[int, Meta(ge=0, le=2**15 - 1)]


class Cause(StrEnum):
    """Why the observed controller did something."""

    # The observation began: this is the state from which it goes on.
    seed = "seed"
    # Records were missed: this is what differs after them.
    gap = "gap"
    # A broker that led something was silent for broker.session.timeout.ms.
    session_expired = "session_expired"
    # A broker that led nothing was fenced: its session expired, or it stopped at once when it was asked to.
    session_or_shutdown = "session_or_shutdown"
    # A broker asked to shut down, and hands over what it leads.
    controlled_shutdown = "controlled_shutdown"
    # A broker in controlled shutdown was fenced: it is done.
    shutdown_complete = "shutdown_complete"
    # The session of a broker that had stopped before ended.
    stopped_session_ended = "stopped_session_ended"
    # A broker registered.
    broker_registered = "broker_registered"
    # A broker registered after it did not stop cleanly, so it left the ELRs.
    unclean_restart = "unclean_restart"
    # A broker was unfenced.
    broker_ready = "broker_ready"
    # An admin unregistered a broker.
    broker_unregistered = "broker_unregistered"
    # A log directory of a broker failed.
    directory_failed = "directory_failed"
    # A broker said which of its log directories are to get no new replicas.
    directories_cordoned = "directories_cordoned"
    # A broker said in which of its log directories replicas are.
    replica_placed = "replica_placed"
    # A leader removed followers from the ISR.
    isr_shrunk = "isr_shrunk"
    # A leader added followers to the ISR.
    isr_expanded = "isr_expanded"
    # The preferred replica leads again: an admin asked for it, or the controller balances leaders.
    preferred_election = "preferred_election"
    # A replica that may lack records leads: an admin asked for it, a setting allows it, or it was the last leader.
    unclean_election = "unclean_election"
    # A leader has recovered after an unclean election.
    leader_recovered = "leader_recovered"
    # An admin moves partitions to other brokers.
    reassignment_began = "reassignment_began"
    # The replicas of a move are in sync, so it ended.
    reassignment_ended = "reassignment_ended"
    # An admin cancelled a move.
    reassignment_cancelled = "reassignment_cancelled"
    # A move needed no new replica, so it was done at once.
    reassignment_done_at_once = "reassignment_done_at_once"
    # A topic was created.
    topic_created = "topic_created"
    # An admin added partitions to a topic.
    partitions_added = "partitions_added"
    # A topic was deleted.
    topic_deleted = "topic_deleted"
    # Dynamic settings changed.
    settings_changed = "settings_changed"
    # ELRs were cleared, because min.insync.replicas changed.
    elr_cleared = "elr_cleared"
    # The level of a feature changed.
    feature_changed = "feature_changed"
    # ACLs, credentials or delegation tokens changed.
    access_changed = "access_changed"
    # Client quotas changed.
    quotas_changed = "quotas_changed"
    # Another controller is active.
    controller_changed = "controller_changed"
    # None of the above.
    other = "other"
    # Nothing has changed since the newest operation: the reader goes on.
    no_change = "no_change"
    # The active controller told settings of its file.
    static_settings = "static_settings"


# What a running reader tells besides the log. It stands at the operation that was published last.
BESIDE_THE_LOG = (Cause.no_change, Cause.static_settings)


class Certainty(StrEnum):
    """How sure the cause is."""

    # Only this operation of Kafka's controller writes such records, or the controller's own log says so.
    certain = "certain"
    # What else was seen makes it likely.
    likely = "likely"
    # Other causes would leave the same records.
    open = "open"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks for the cause, besides the records. It holds no secrets."""

    # The broker that the operation is about.
    broker: Id | UnsetType = UNSET
    # How long the broker had not fetched when it was fenced.
    silent_ms: TimeMs | UnsetType = UNSET
    # What the controller's own log says.
    log_line: Text | UnsetType = UNSET
    # The causes that would leave the same records.
    alternatives: Annotated[tuple[Cause, ...], Meta(max_length=len(Cause))] = ()


class ObservedBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's registration as it now stands."""

    broker: Id
    broker_epoch: BrokerEpoch
    incarnation: Text = ""
    rack: Text | None = None
    # The ids of its log directories.
    log_dirs: Texts = ()
    # Those that are to get no new replicas.
    cordoned_log_dirs: Texts = ()
    # Whether it must not lead or join an ISR.
    fenced: bool
    # Whether it is in controlled shutdown.
    shutting_down: bool = False


class ObservedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic by its name and id."""

    topic: Name
    topic_id: Text


class ObservedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as it now stands, whole. A new topic's partitions come in order of number."""

    topic: Name
    partition: Id
    replicas: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=1_000)]
    isr: Ids
    leader: ObservedLeader
    leader_epoch: Epoch
    partition_epoch: Epoch
    leader_recovery_state: Literal["RECOVERED", "RECOVERING"] = "RECOVERED"
    adding_replicas: Ids = ()
    removing_replicas: Ids = ()
    # The id of the log directory of each replica; empty if none is known.
    directories: Texts = ()
    # The eligible leader replicas (KIP-966).
    elr: Ids = ()
    # The last leader, while ISR and ELR are empty.
    last_known_elr: Ids = ()


class ObservedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A dynamic setting as it now stands. A null value means that it is removed."""

    # The type of what has the setting: topic, broker, cluster, or another of Kafka's types of resources; controller for
    # its file.
    entity_type: Name
    # Its name; empty for the cluster.
    entity: Text = ""
    # Kafka's name of the setting.
    key: Name
    # Of a secret setting only a mark.
    value: Annotated[str, Meta(max_length=1_000_000)] | None


class ObservedFeature(msgspec.Struct, frozen=True, kw_only=True):
    """The level of a feature (KIP-584)."""

    name: Name
    level: _Level


class ObservedController(msgspec.Struct, frozen=True, kw_only=True):
    """The active controller."""

    # Its node id; -1 is none.
    controller: ObservedLeader
    # The epoch of the metadata quorum.
    epoch: Epoch


class CountedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Records of which only the number is observed."""

    # Their type, as Kafka names it.
    record: Name
    # How many.
    count: Offset


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation led to: everything that changed, as it stands afterwards."""

    # Registrations that are new or changed.
    brokers: Annotated[tuple[ObservedBroker, ...], Meta(max_length=ROWS_MAX)] = ()
    # Brokers that are no longer registered.
    unregistered_brokers: Annotated[tuple[Id, ...], Meta(max_length=ROWS_MAX)] = ()
    # New topics.
    topics: Annotated[tuple[ObservedTopic, ...], Meta(max_length=ROWS_MAX)] = ()
    # Topics that are gone.
    deleted_topics: Annotated[tuple[ObservedTopic, ...], Meta(max_length=ROWS_MAX)] = ()
    # Partitions that are new or changed.
    partitions: Annotated[tuple[ObservedPartition, ...], Meta(max_length=ROWS_MAX)] = ()
    # Dynamic settings that changed.
    settings: Annotated[tuple[ObservedSetting, ...], Meta(max_length=ROWS_MAX)] = ()
    # Features with another level.
    features: Annotated[tuple[ObservedFeature, ...], Meta(max_length=ROWS_MAX)] = ()
    # Set if another one is active.
    controller: ObservedController | None = None
    # What else changed, in numbers.
    other: Annotated[tuple[CountedRecords, ...], Meta(max_length=ROWS_MAX)] = ()


class Observed(Event, frozen=True, kw_only=True, tag="observed"):
    """The controller of an observed cluster did something. ``time_ms`` is the time of the batch in its log."""

    # The observed cluster. A bus is the shadow of one.
    cluster_id: Annotated[str, Meta(min_length=1, max_length=256)]
    # Of the operation's first record in the metadata log.
    offset: Offset
    # Of its last record.
    last_offset: Offset
    # The epoch of the batch in the metadata log.
    epoch: Epoch
    # Why, as far as the log shows: see [Causes](#causes).
    cause: Cause
    # How sure that is.
    certainty: Certainty
    # What speaks for it.
    evidence: Evidence | UnsetType = UNSET
    # 0 ≤ part < parts.
    part: Id = 0
    # How many events the operation comes in.
    parts: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    # What it led to.
    results: Results
