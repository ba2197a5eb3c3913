"""Decisions about a partition in sentences: what changed, by which rule, who was passed over, what was refused."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import UNSET

from history.told_events import led_by, listed
from state import decisions as d
from state.ids import NO_LEADER
from state.obstacle import Obstacle
from state.reason import Reason

_R = Reason
RULES: dict[Reason, str] = {
    _R.TOPIC_ADOPTED: "another controller led the partition so before",
    _R.TOPIC_CREATED: "a new partition is led by its first replica that is online",
    _R.PARTITIONS_CREATED: "a new partition is led by its first replica that is online",
    _R.LEADER_FENCED: "when the leader is gone, the first assigned replica that is in sync and online leads",
    _R.LEADER_RETURNED: "a partition without a leader gets one once a replica in the ISR is online",
    _R.REPLICA_FENCED: "a replica that is offline leaves the ISR",
    _R.REPLICA_ONLINE: "a broker that returns is told who leads the partitions of its replicas",
    _R.LOG_LEFT_BEHIND: "a replica whose broker came back without its log directory is not elected, unless uncleanly",
    _R.ELIGIBLE_ELECTION: "if no replica in the ISR is online, the first one that is online and has every committed "
    "record leads",
    _R.UNCLEAN_ELECTION: "if no replica in the ISR is online, and unclean elections are allowed, the first replica "
    "that is online leads",
    _R.LOG_COMPLETE: "a crash only shortens a log, so a replica that had every committed record is eligible again if "
    "its log still reaches the high watermark, and the ISR has been too small to commit since",
    _R.LOG_ELECTION: "if no replica is in the ISR or eligible, unclean.recovery.strategy elects the log that ends in "
    "the latest leader epoch, and of these the longest",
    _R.PREFERRED_ELECTION: "a preferred election takes the first assigned replica, if it is in sync and online",
    _R.LEADER_BALANCE: "a broker that leads too few of its preferred partitions gets them back",
    _R.REASSIGNMENT: "a move adds replicas, waits until they are in sync, and then removes others",
    _R.CONTROLLED_SHUTDOWN: "a broker that shuts down hands over what it leads and leaves the ISRs",
    _R.ISR_SHRUNK: "the leader proposes the ISR, and it counts if no fence refuses it",
    _R.ISR_EXPANDED: "the leader proposes the ISR, and it counts if no fence refuses it",
    _R.ISR_ALTERED: "the leader proposes the ISR, and it counts if no fence refuses it",
    _R.TOPIC_DELETED: "a partition that is deleted has no leader, and each replica is told to remove its log",
    _R.LOG_DIR_ASSIGNED: "a broker says in which of its log directories a replica is",
    _R.OBSERVATION_BEGAN: "what was found when the observation began is taken as it is",
    _R.RECORDS_MISSED: "what differs after a gap in the observed log is taken as it is",
    _R.OBSERVED: "what the observed controller decided is taken as it is",
    _R.CONFIG_CHANGED: "no replica outside the ISR is eligible once the ISR has min.insync.replicas members",
    _R.BROKER_REGISTERED: "a replica whose log may have lost its end is not eligible to lead",
    _R.BROKER_RESTARTED: "a replica whose log may have lost its end is not eligible to lead",
    _R.BROKER_UNREGISTERED: "a replica whose broker is unregistered is not eligible to lead",
    _R.LEADER_RECOVERED: "a leader that was elected uncleanly says when it has recovered",
}
OBSTACLES: dict[str, str] = {
    Obstacle.BROKER_UNREGISTERED: "it was not registered",
    Obstacle.BROKER_FENCED: "it was fenced",
    Obstacle.BROKER_SHUTTING_DOWN: "it was shutting down",
    Obstacle.LOG_LOST: "its log directory was lost",
    Obstacle.LOG_LEFT_BEHIND: "it came back without the log directory that its replica was in",
    Obstacle.NOT_IN_SYNC: "it was not in the ISR",
}
# What each refusal protects.
FENCES: dict[str, str] = {
    "STALE_BROKER_EPOCH": "only the newest start of a broker speaks for it",
    "BROKER_ID_NOT_REGISTERED": "only a registered broker is heard",
    "FENCED_LEADER_EPOCH": "a former leader does not change the ISR",
    "NOT_CONTROLLER": "an epoch that is ahead of the controller's comes from another history",
    "INVALID_UPDATE_VERSION": "a proposal counts only if it was made from the partition as it stands",
    "INELIGIBLE_REPLICA": "a replica that is fenced, shutting down, restarted or behind does not join the ISR",
    "UNKNOWN_TOPIC_ID": "a request about a deleted topic does not count for a new topic of that name",
}
# Only an election has these reasons. Others may also leave a leader as it is.
_ELECTED = {
    _R.TOPIC_CREATED,
    _R.PARTITIONS_CREATED,
    _R.LEADER_FENCED,
    _R.LEADER_RETURNED,
    _R.ELIGIBLE_ELECTION,
    _R.UNCLEAN_ELECTION,
    _R.LOG_ELECTION,
    _R.PREFERRED_ELECTION,
    _R.LEADER_BALANCE,
}
_BROKERS: dict[Reason, str] = {
    _R.BROKER_REGISTERED: "was registered, and is fenced until its first heartbeat",
    _R.BROKER_RESTARTED: "was registered in a new start, so the replicas of its former start failed",
    _R.BROKER_UNFENCED: "became active",
    _R.BROKER_SESSION_EXPIRED: "was fenced because its session expired",
    _R.BROKER_CONNECTION_LOST: "was fenced because its connection was lost for too long",
    _R.BROKER_ASKED_FENCE: "was fenced because it asked for it",
    _R.LOG_DIR_FAILED: "lost a log directory, and serves the others",
    _R.BROKER_FENCED: "was fenced",
    _R.OBSERVATION_BEGAN: "was found when the observation began",
    _R.RECORDS_MISSED: "changed while records were missed",
    _R.OBSERVED: "changed",
    _R.LOG_DIRS_CORDONED: "said which of its log directories are to get no new replicas",
    _R.BROKER_UNREGISTERED: "was unregistered",
    _R.CONTROLLED_SHUTDOWN: "shuts down",
}


def told(decision: d.AnyDecision, before: d.LeaderAndIsr | None) -> Iterator[str]:
    """Yield sentences about a decision. ``before`` is how the partition stood, None if that is not known."""
    match decision:
        case d.LeaderAndIsr():
            yield from _leader_and_isr(decision, before)
        case d.StopReplica():
            replicas = "its replica" if len(decision.to) == 1 else "their replicas"
            yield f"Told {brokers(decision.to)} to stop {'and delete ' if decision.delete else ''}{replicas}."
        case d.TopicDecision():
            yield _TOPICS[decision.state].format(decision.topic)
        case d.BrokerDecision():
            yield f"Broker {decision.broker} {_BROKERS.get(decision.reason, f'changed ({decision.reason})')}."
        case d.ConfigDecision():
            settings = ", ".join(f"{name}={value}" for name, value in sorted(decision.config.items()))
            yield f"The topic's own settings are now: {settings or 'none'}."
        case d.Divergence():
            yield from _divergence(decision)
        case d.Violation():
            like = "" if decision.defect is UNSET else f" It looks like {decision.defect}."
            yield f"Violation of '{decision.invariant}': {decision.message}.{like}"
        case d.Rejected():
            yield f"A change was withheld ({decision.reason}): {decision.message}."


def _divergence(decision: d.Divergence) -> Iterator[str]:
    field = {"isr": "ISR"}.get(decision.field, decision.field.replace("_", " "))
    found, wanted = (_value(decision.field, value) for value in (decision.observed, decision.predicted))
    like = "" if decision.defect is UNSET else f" It looks like {decision.defect}."
    yield f"The rules would have decided otherwise: {field} {wanted}, where the controller left {found}.{like}"


def _value(field: str, value: int | tuple[int, ...]) -> str:
    if isinstance(value, tuple):
        return listed(value)
    return _id(value) if field == "leader" else str(value)


_TOPICS = {
    "created": "Topic {} was created.",
    "deleting": "Topic {} is being deleted.",
    "ineligible": "The deletion of topic {} waits.",
    "deleted": "Topic {} is gone.",
}


def told_refusal(answer: d.Answer, topic: str, partition: int) -> str:
    """Return the sentence about a refused request."""
    error, message = answer.error, answer.message
    for result in () if answer.results is UNSET else answer.results:
        if (result.topic, result.partition) == (topic, partition):
            error, message = result.error, result.message
    if error == "NEW_LEADER_ELECTED":
        # The change was made, and the sender lost its leadership by it.
        return f"The sender was told {error}: {message}."
    fence = f" The fence: {FENCES[error]}." if error in FENCES else ""
    stop = "" if message.endswith(("?", ".")) else "."
    return f"This was refused, {error}: {message}{stop}{fence}"


def _leader_and_isr(after: d.LeaderAndIsr, before: d.LeaderAndIsr | None) -> Iterator[str]:
    name = f"{after.topic}-{after.partition}"
    if before is None and after.is_new:
        yield f"{name} got leader {after.leader}, ISR {listed(after.isr)}, on replicas {listed(after.replicas)}."
    elif before is None:
        yield f"{name} then had {state_in_words(after)}."
    else:
        changes = list(_changes(before, after))
        if changes:
            yield f"{name}: {', '.join(changes)}."
        else:
            leader = "no replica" if after.leader == NO_LEADER else f"broker {after.leader}"
            yield f"Told {brokers(after.to)} that {leader} leads {name}. Nothing else changed."
    yield f"Rule {after.reason}: {RULES.get(after.reason, 'see the contract')}."
    if after.reason is Reason.ELIGIBLE_ELECTION:
        yield (
            f"Broker {after.leader} was not in the ISR any more, but it has every committed record, because since it "
            "left the ISR no leader could commit without min.insync.replicas members, and its log has kept its end."
        )
    if _is_election(after, before):
        yield from _election(after, before)


def _is_election(after: d.LeaderAndIsr, before: d.LeaderAndIsr | None) -> bool:
    """Return whether a decision is known to have elected. A topic is adopted with the leader that it has."""
    if after.reason == Reason.TOPIC_ADOPTED:
        return False
    if before is not None:
        return before.leader != after.leader
    return after.reason in _ELECTED or after.unclean or after.passed_over is not UNSET


def _election(after: d.LeaderAndIsr, before: d.LeaderAndIsr | None) -> Iterator[str]:
    passed_over = {} if after.passed_over is UNSET else after.passed_over
    for broker, obstacle in passed_over.items():
        if broker != after.leader:
            yield f"Broker {broker} was passed over because {OBSTACLES.get(obstacle, obstacle)}."
    if after.leader == NO_LEADER:
        if passed_over:
            yield "So no replica could lead."
        return
    if after.compared_logs:
        yield f"Logs compared: {_logs(after.compared_logs)}."
        yield (
            f"That of broker {after.leader} is the most complete: the election was unclean, and committed records may "
            "be lost."
        )
        return
    if after.unclean:
        has_log = passed_over.get(after.leader) != Obstacle.LOG_LEFT_BEHIND
        last = () if before is None else before.last_known_elr or ()
        if after.leader in last and not (before is None or before.isr or before.elr):
            yield f"Broker {after.leader} was the last leader, and no replica is known to have more."
        why = "was not in the ISR" if has_log else "came back without the log directory that its replica was in"
        yield f"Broker {after.leader} {why}: the election was unclean, and committed records may be lost."
        return
    later = after.replicas[after.replicas.index(after.leader) + 1 :]
    if later:
        yield f"{brokers(later, capital=True)} came later in the assignment."


def _logs(compared: Mapping[int, tuple[int, int]]) -> str:
    """Tell where logs end, the most complete first."""
    ranked = sorted(compared.items(), key=lambda one: (one[1], -one[0]), reverse=True)
    return "; ".join(f"broker {broker}'s ends at {end} in leader epoch {epoch}" for broker, (epoch, end) in ranked)


def _changes(before: d.LeaderAndIsr, after: d.LeaderAndIsr) -> Iterator[str]:
    if before.leader != after.leader:
        yield f"leader {_id(before.leader)} -> {_id(after.leader)}"
    lists = (("ISR", "isr"), ("replicas", "replicas"), ("adding", "adding_replicas"), ("removing", "removing_replicas"))
    for word, field in lists:
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield f"{word} {listed(old)} -> {listed(new)}"
    for word, old, new in (
        ("eligible", before.elr or (), after.elr or ()),
        ("last leader", before.last_known_elr or (), after.last_known_elr or ()),
    ):
        if old != new:
            yield f"{word} {listed(old)} -> {listed(new)}"
    for broker, directory in (after.directories or {}).items():
        yield f"replica {broker} is in log directory {directory}"
    pairs = (("recovery", "leader_recovery_state"), ("leader epoch", "leader_epoch"))
    for word, field in (*pairs, ("partition epoch", "partition_epoch")):
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield f"{word} {old} -> {new}"


def state_in_words(decision: d.LeaderAndIsr) -> str:
    """Return the state of a partition after a decision, in words."""
    epochs = f"leader epoch {decision.leader_epoch}, partition epoch {decision.partition_epoch}"
    moving = ""
    if decision.adding_replicas or decision.removing_replicas:
        moving = f", adding {listed(decision.adding_replicas)}, removing {listed(decision.removing_replicas)}"
    recovering = ", recovering" if decision.leader_recovery_state == "RECOVERING" else ""
    replicas = f"ISR {listed(decision.isr)} of replicas {listed(decision.replicas)}{moving}"
    if decision.elr:
        replicas += f", eligible {listed(decision.elr)}"
    return f"{led_by(decision.leader)}{recovering}, {replicas}, {epochs}"


def _id(leader: int) -> str:
    return "none" if leader == NO_LEADER else str(leader)


def brokers(ids: Iterable[int], *, capital: bool = False) -> str:
    """Return ids with the word for them."""
    ids = list(ids)
    word = "broker" if len(ids) == 1 else "brokers"
    return f"{word.capitalize() if capital else word} {', '.join(map(str, ids)) or 'none'}"
