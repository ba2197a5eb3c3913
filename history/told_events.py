"""An event in one sentence."""

from collections import Counter

from msgspec import UNSET

from conf.counted import counted
from history.told_observations import told_observation
from state import events as e
from state.entity import named
from state.event_text import decode
from state.ids import NO_LEADER
from state.secrets import shown_settings

Told = e.AnyEvent | e.Malformed
# The most partitions of a list that are named.
NAMED_MAX = 10


def told_event(raw: bytes | None) -> str:
    """Return a sentence about the event with this text; ``raw`` is None if retention removed the event."""
    if raw is None:
        return "The event is no longer on the bus."
    event = decode(raw)
    if isinstance(event, e.Malformed):
        return f"The event was malformed: {event.field + ': ' if event.field else ''}{event.message}."
    if isinstance(event, e.Observed):
        return told_observation(event)
    of_broker = _of_broker(event) or _of_replicas(event)
    return of_broker or _of_gateway(event) or _of_admin(event) or _of_engine(event)


def _of_broker(event: Told) -> str | None:
    match event:
        case e.BrokerRegister():
            return f"Broker {event.broker} registered."
        case e.ControlledShutdown():
            return f"Broker {event.broker} asked to shut down."
        case e.BrokerHeartbeat():
            return _heartbeat(event)
        case e.BrokerConnectionLost():
            return f"The connection to broker {event.broker} was lost."
        case e.AllocateProducerIds():
            return f"Broker {event.broker} asked for a block of producer ids."
    return None


def _of_replicas(event: Told) -> str | None:
    match event:
        case e.AlterIsr():
            epochs = f"leader epoch {event.leader_epoch}, partition epoch {event.partition_epoch}"
            isr = f"{listed(event.isr)} of {event.topic}-{event.partition}"
            return f"Broker {event.broker} asked for ISR {isr}, as leader ({epochs})."
        case e.AlterIsrs():
            return f"Broker {event.broker} asked for the ISRs of {counted(event.rows, 'partition')} at once, as leader."
        case e.LogEndOffset():
            end = f"{event.topic}-{event.partition} ends at {event.log_end_offset}"
            return f"Broker {event.broker} reported that its log of {end} (leader epoch {event.leader_epoch})."
        case e.LogEndOffsets():
            ends = counted(event.rows, "of its logs ends", "of its logs end")
            return f"Broker {event.broker} reported where {ends}."
        case e.IsrWritten():
            place = f"{event.topic}-{event.partition}"
            written = f"ISR {listed(event.isr)} of {place} into ZooKeeper"
            return f"Broker {event.broker} wrote {written}, as leader (leader epoch {event.leader_epoch})."
        case e.AssignReplicasToDirs():
            replicas = ", ".join(f"{event.topic}-{number}" for number in event.partitions[:NAMED_MAX])
            more = f" and {len(event.partitions) - NAMED_MAX} more" if len(event.partitions) > NAMED_MAX else ""
            return f"Broker {event.broker} said that its replicas of {replicas}{more} are in {event.directory}."
        case e.ReplicaReport():
            error = f" ({event.error})" if event.error else ""
            epoch = f" in leader epoch {event.leader_epoch}" if event.leader_epoch >= 0 else ""
            replica = f"{event.topic}-{event.partition}"
            return f"Broker {event.broker} reported its replica of {replica} as {event.outcome}{error}{epoch}."
        case e.ReplicaLog():
            ends = f"ends at {event.log_end_offset}, last written in leader epoch {event.last_written_epoch}"
            if event.log_end_offset == 0:
                ends = "is empty"
            return f"Broker {event.broker} reported that its log of {event.topic}-{event.partition} {ends}."
        case e.ReplicaReports():
            return f"Broker {event.broker} reported on {event.rows} of its replicas: {_outcomes(event)}."
    return None


def _outcomes(event: e.ReplicaReports) -> str:
    counts = Counter(row.outcome for named in event.topics for row in named.partitions)
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def _heartbeat(event: e.BrokerHeartbeat) -> str:
    """Tell a heartbeat, which may both tell of log directories and ask for something."""
    who, told = f"Broker {event.broker}", []
    if event.offline_log_dirs:
        told.append(f"that log directories failed: {', '.join(event.offline_log_dirs)}")
    if event.cordoned_log_dirs is not UNSET:
        told.append(f"which log directories are cordoned: {', '.join(event.cordoned_log_dirs) or 'none'}")
    said = ", and ".join(told)
    if event.want_fence and event.principal:
        return f"{event.principal} asked to fence broker {event.broker}."
    if event.want_shutdown or event.want_fence:
        wish = "asked to shut down" if event.want_shutdown else "asked to be fenced"
        return f"{who} {wish}, and said {said}." if said else f"{who} {wish}."
    return f"{who} said with a heartbeat {said}." if said else f"{who} sent a heartbeat, ready to serve."


def _of_gateway(event: Told) -> str | None:
    match event:
        case e.GatewayStarted():
            return f"Gateway {event.gateway} started; the voters are {listed(event.voters)}."
        case e.GatewayHeartbeat():
            late = f" after it was held up for {event.late_ms} ms" if event.late_ms else ""
            stop = ", and is about to stop" if event.want_shutdown else ""
            heard = "" if event.hears is UNSET else f" It hears brokers {listed(event.hears)}."
            return f"Gateway {event.gateway} sent a heartbeat{late}{stop}.{heard}"
    return None


def _of_admin(event: Told) -> str | None:
    who = getattr(event, "principal", None) or "An admin"
    match event:
        case e.CreateTopic():
            return f"{who} asked for the topic {event.topic}."
        case e.AdoptTopic():
            return f"{who} found the topic {event.topic}, which another controller led."
        case e.CreatePartitions():
            return f"{who} asked for {counted(event.total, 'partition')} of {event.topic}."
        case e.DeleteTopic():
            return f"{who} asked to delete the topic {event.topic}."
        case e.AlterReassignment():
            what = "to cancel the move of" if event.replicas is None else "to move"
            target = "" if event.replicas is None else f" to replicas {listed(event.replicas)}"
            return f"{who} asked {what} {event.topic}-{event.partition}{target}."
        case e.ElectLeaders():
            which = "an unclean" if event.election_type == "unclean" else "a preferred"
            return f"{who} asked for {which} election in {_named(event.partitions)}."
        case e.AlterConfig():
            entity = "the cluster" if event.entity == "cluster" else f"{event.entity} {event.name}"
            return f"{who} changed settings of {entity}: {_settings(event)}."
    return _of_admin_of_the_cluster(event, who)


def _of_admin_of_the_cluster(event: Told, who: str) -> str | None:
    match event:
        case e.CreateAcls():
            return f"{who} asked for {counted(len(event.acls), 'ACL')}."
        case e.DeleteAcls():
            return f"{who} asked to delete ACLs."
        case e.AlterEntity():
            return f"{who} asked to change the {event.entity_type} of {named(event.names)}."
        case e.BrokerUnregister():
            return f"{who} unregistered broker {event.broker}."
        case e.RaiseLevel():
            return f"{who} asked to raise the level to {event.level}."
    return None


def _of_engine(event: Told) -> str:
    match event:
        case e.Tick():
            return "The engine looked at its clock (tick)."
        case e.ControllerStarted():
            return f"Job {event.controller_id} claimed controller epoch {event.controller_epoch}."
        case e.LeaderImbalance():
            return "The engine counted which brokers lead fewer partitions than they should."
        case e.SessionsExtended():
            return f"The engine was held up for {event.by_ms} ms, which do not count as a broker's silence."
    # A test checks that every kind has a sentence above.
    return f"The event was of the kind {event.__struct_config__.tag}."


def _named(partitions: tuple[e.TopicPartition, ...] | None) -> str:
    if partitions is None:
        return "all partitions"
    if len(partitions) == 1:
        return f"{partitions[0].topic}-{partitions[0].partition}"
    return f"{len(partitions)} named partitions"


def _settings(event: e.AlterConfig) -> str:
    shown = sorted(shown_settings(event.entity, event.config).items())
    pairs = (f"{name} removed" if value is None else f"{name}={value}" for name, value in shown)
    return ", ".join(pairs) or "none"


def led_by(leader: int) -> str:
    return "no leader" if leader == NO_LEADER else f"leader {leader}"


def listed(ids: tuple[int, ...]) -> str:
    """Return ids as text; ``none`` if there are none."""
    return ",".join(map(str, ids)) or "none"
