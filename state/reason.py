"""Why a decision was made: a fixed vocabulary, so that it can be counted and searched."""

from enum import StrEnum


class Reason(StrEnum):
    """The cause of a decision."""

    # A job took over after a time without a controller, so the metadata quorum goes on in another epoch.
    CONTROLLER_STARTED = "CONTROLLER_STARTED"
    # A broker registered, or changed what it had registered.
    BROKER_REGISTERED = "BROKER_REGISTERED"
    # A broker registered again as another process.
    BROKER_RESTARTED = "BROKER_RESTARTED"
    # A fenced broker asked to serve.
    BROKER_UNFENCED = "BROKER_UNFENCED"
    # A broker was silent for broker.session.timeout.ms.
    BROKER_SESSION_EXPIRED = "BROKER_SESSION_EXPIRED"
    # A gateway lost its connection to a broker, which stayed silent for broker.connection.lost.grace.ms.
    BROKER_CONNECTION_LOST = "BROKER_CONNECTION_LOST"
    # A broker asked to be fenced, for example at the end of its shutdown.
    BROKER_ASKED_FENCE = "BROKER_ASKED_FENCE"
    # One of a broker's log directories failed. The broker serves the others.
    LOG_DIR_FAILED = "LOG_DIR_FAILED"
    # A broker said which of its log directories are to get no new replicas.
    LOG_DIRS_CORDONED = "LOG_DIRS_CORDONED"
    # A broker said in which of its log directories a replica is.
    LOG_DIR_ASSIGNED = "LOG_DIR_ASSIGNED"
    # An operator unregistered a broker.
    BROKER_UNREGISTERED = "BROKER_UNREGISTERED"
    # A broker asked to shut down, so it hands over what it leads and leaves ISRs.
    CONTROLLED_SHUTDOWN = "CONTROLLED_SHUTDOWN"
    # A topic was created, or one of its new partitions got its first leader.
    TOPIC_CREATED = "TOPIC_CREATED"
    # A gateway took over a topic that another controller led, as it was.
    TOPIC_ADOPTED = "TOPIC_ADOPTED"
    # A topic is being deleted.
    TOPIC_DELETED = "TOPIC_DELETED"
    # An admin added partitions to a topic.
    PARTITIONS_CREATED = "PARTITIONS_CREATED"
    # The leader failed, and another in-sync replica leads, or none is left.
    LEADER_FENCED = "LEADER_FENCED"
    # A partition without a leader got one, because a replica of its ISR came back.
    LEADER_RETURNED = "LEADER_RETURNED"
    # A follower failed and left the ISR. The leader stays.
    REPLICA_FENCED = "REPLICA_FENCED"
    # A broker came back, and learns what its replica has to do.
    REPLICA_ONLINE = "REPLICA_ONLINE"
    # A broker came back without the log directory of a replica that was the last one in sync, so no replica leads.
    LOG_LEFT_BEHIND = "LOG_LEFT_BEHIND"
    # No in-sync replica was left, so one outside the ISR leads that has every committed record.
    ELIGIBLE_ELECTION = "ELIGIBLE_ELECTION"
    # A broker crashed, and the log of its replica has proved to have every committed record all the same.
    LOG_COMPLETE = "LOG_COMPLETE"
    # No in-sync or eligible replica was left, so the one with the most complete log leads. Records may be lost.
    LOG_ELECTION = "LOG_ELECTION"
    # No in-sync replica was left, so one that was not in sync leads. Records may be lost.
    UNCLEAN_ELECTION = "UNCLEAN_ELECTION"
    # An admin asked for the preferred leader.
    PREFERRED_ELECTION = "PREFERRED_ELECTION"
    # Leadership went back to the preferred leader, because the imbalance was too large; or the counts of that check.
    LEADER_BALANCE = "LEADER_BALANCE"
    # An admin moves a partition to other brokers: the move began, progressed, was cancelled, or ended.
    REASSIGNMENT = "REASSIGNMENT"
    # The leader removed a follower from the ISR.
    ISR_SHRUNK = "ISR_SHRUNK"
    # The leader added a follower to the ISR.
    ISR_EXPANDED = "ISR_EXPANDED"
    # The leader replaced members of the ISR.
    ISR_ALTERED = "ISR_ALTERED"
    # The leader has recovered after an unclean election (KIP-704).
    LEADER_RECOVERED = "LEADER_RECOVERED"
    # A gateway started and leads the metadata quorum.
    GATEWAY_STARTED = "GATEWAY_STARTED"
    # The gateway that led was silent for controller.quorum.fetch.timeout.ms, so another one leads.
    GATEWAY_SILENT = "GATEWAY_SILENT"
    # Another gateway heard more brokers than the leader, or the leader heard none, so another one leads.
    GATEWAY_UNHEARD = "GATEWAY_UNHEARD"
    # The gateway that led is stopping, so another one leads.
    GATEWAY_STOPPED = "GATEWAY_STOPPED"
    # A broker got a block of producer ids.
    PRODUCER_IDS_ALLOCATED = "PRODUCER_IDS_ALLOCATED"
    # Nothing was decided for metadata.max.idle.interval.ms.
    MAX_IDLE_INTERVAL = "MAX_IDLE_INTERVAL"
    # Dynamic settings changed, or the settings in force did.
    CONFIG_CHANGED = "CONFIG_CHANGED"
    # An admin created or deleted ACLs.
    ACLS_CHANGED = "ACLS_CHANGED"
    # An admin changed a metadata entity.
    ENTITY_CHANGED = "ENTITY_CHANGED"
    # An operator raised the level.
    LEVEL_RAISED = "LEVEL_RAISED"
    # A delegation token is past its time.
    TOKEN_EXPIRED = "TOKEN_EXPIRED"
    # The high watermark moved, because replicas reported their log ends.
    REPLICATED = "REPLICATED"
    # The observation of a cluster began with this.
    OBSERVATION_BEGAN = "OBSERVATION_BEGAN"
    # Records of an observed cluster were missed, and this differs after them.
    RECORDS_MISSED = "RECORDS_MISSED"
    # A broker of an observed cluster was fenced: its session expired, or it stopped at once when it was asked to.
    BROKER_FENCED = "BROKER_FENCED"
    # Another controller of an observed cluster is active.
    CONTROLLER_CHANGED = "CONTROLLER_CHANGED"
    # An observed cluster changed, and no reason above fits.
    OBSERVED = "OBSERVED"
    # The controller of an observed cluster decided otherwise than the rules would have.
    RULES_DIFFER = "RULES_DIFFER"
    # The controller of an observed cluster did what no controller may do.
    INVARIANT_VIOLATED = "INVARIANT_VIOLATED"
    # An event leads something on a bus that is a shadow, or observes another cluster than the bus's.
    SHADOW_REFUSED = "SHADOW_REFUSED"
    # A request was carried out.
    REQUEST_DONE = "REQUEST_DONE"
    # A request was refused. Its answer has the error.
    REQUEST_REFUSED = "REQUEST_REFUSED"
    # A text is not an event, or a field has a value that it cannot have.
    MALFORMED = "MALFORMED"
    # An event claims a time too far in the future.
    TIME_AHEAD = "TIME_AHEAD"
    # An event names a broker that is not registered.
    UNKNOWN_BROKER = "UNKNOWN_BROKER"
    # An event claims a controller epoch that no job holds.
    UNKNOWN_CLAIM = "UNKNOWN_CLAIM"
    # A change was withheld, because it would have broken an invariant.
    INVARIANT_BROKEN = "INVARIANT_BROKEN"
    # The rules failed on an event, which was left out. This is a defect of isrflow.
    RULES_FAILED = "RULES_FAILED"
