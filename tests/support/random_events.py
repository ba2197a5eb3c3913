"""The events of random logs: each maker reads three small numbers against the state so far."""

from collections.abc import Callable
from typing import Any

from state.cluster import State
from state.level import FIRST_LEVEL
from state.partition import ReplicaState, TopicState
from tests.support.lying_clocks import forged
from tests.support.random_places import (
    BROKERS,
    STRANGER,
    TOPICS,
    Fields,
    broker_at,
    epoch_of,
    of_replica,
    some_partition,
    where,
)
from tests.support.random_recoveries import RECOVERIES
from tests.support.random_reports import of_many


def _register(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    broker = broker_at(a) if a < 11 else 3
    return "broker_register", {
        "broker": broker,
        "incarnation": f"i{b // 6}",
        "rack": None if c == 11 else f"r{a % 2}",
        "log_dirs": [[], ["/d0"], ["/d1"], ["/d0", "/d1"]][b % 4],
        "features": _features(state, b, c),
        "behind_gateway": a % 2 == 0,
        "previous_broker_epoch": epoch_of(state, broker, 0) if c % 2 else -1,
    }


def _features(state: State, b: int, c: int) -> list[Fields]:
    share = [{"name": "share.version", "min_version": 0, "max_version": 1}] if b % 3 else []
    return share + [{"name": "metadata.version", "min_version": 7, "max_version": 27}][: c % 2]


def _level(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    values = {"share.version": None if a > 8 else b % 2}
    return "alter_entity", {"entity_type": "features", "names": {}, "values": values, "request_id": c}


def _gateway(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    who: Fields = {"gateway": 100 + a % 2, "incarnation": f"g{b % 3}"}
    # One of an older release is refused once the level was raised.
    if state.cluster.level > FIRST_LEVEL and b < 11:
        who["level"] = state.cluster.level
    if c % 3 == 0:
        return "gateway_started", who | {"voters": [101, 100], "is_kraft": b % 4 > 0}
    held = state.cluster.gateways.get(100 + a % 2)
    told: Fields = {"late_ms": c * 100} | ({"want_shutdown": True} if b == 7 else {})
    if c % 3 == 1:
        told["hears"] = list(BROKERS[: b % 4])
    return "gateway_heartbeat", who | ({"incarnation": held.incarnation} if held else {}) | told


def _producer_ids(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    broker = broker_at(a)
    return "allocate_producer_ids", {"broker": broker, "broker_epoch": epoch_of(state, broker, b), "request_id": b}


def _beat(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    broker = broker_at(a)
    asked = {"want_fence": b == 8, "want_shutdown": b == 9, "request_id": b if b == 7 else None}
    return "broker_heartbeat", {"broker": broker, "broker_epoch": epoch_of(state, broker, b)} | asked


def _shutdown(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    broker = broker_at(a)
    return "controlled_shutdown", {"broker": broker, "broker_epoch": epoch_of(state, broker, b), "request_id": "s"}


def _create(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    config = [{}, {}, {"unclean.leader.election.enable": True}, {"min.insync.replicas": 2}][b % 4]
    fields: Fields = {"topic": TOPICS[a % 5], "config": config, "validate_only": b == 11, "request_id": a}
    if b < 6:
        start = c % 4
        replicas = [BROKERS[(start + n) % 4] for n in range(1 + b % 4)]
        return "create_topic", fields | {"assignment": {"0": replicas, "1": replicas[::-1]}}
    return "create_topic", fields | {"partitions": 1 + c % 3, "replication_factor": 1 + b % 4}


def _create_partitions(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    topic = state.topics.get(TOPICS[a % 5])
    held = len(topic.partitions) if topic else 1
    return "create_partitions", {"topic": TOPICS[a % 5], "total": held + b % 3}


def _alter_isr(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    some = some_partition(state, a)
    if some is None:
        return "tick", {}
    partition = some[1]
    leader = partition.leader if partition.leader >= 0 and b != 10 else broker_at(c)
    wanted = [replica for place, replica in enumerate(partition.replicas) if (b >> (place % 4)) & 1 == 0]
    isr = [leader, *(replica for replica in wanted if replica != leader)] if c != 10 else wanted
    return "alter_isr", of_replica(state, a) | {
        "broker": leader,
        "broker_epoch": epoch_of(state, leader, b),
        "leader_epoch": max(0, partition.leader_epoch + (c == 9) - (c == 8)),
        "partition_epoch": max(0, partition.partition_epoch + (c == 7) - (c == 6)),
        "isr": isr,
        "isr_epochs": [epoch_of(state, replica, 10 + (c == 5)) for replica in isr] if c < 6 else None,
        "leader_recovery_state": "RECOVERING" if c == 4 else None,
    }


def _alter_isrs(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    """Ask for ISRs of all partitions that one broker leads, and sometimes of others."""
    leader = broker_at(a)
    asked: dict[str, list[list[Any]]] = {}
    for place in range(sum(len(topic.partitions) for name in TOPICS if (topic := state.topics.get(name)))):
        kind, one = _alter_isr(state, place, b if place % 3 else 0, (c + place) % 12)
        if kind == "alter_isr" and (one["broker"] == leader or c == 3):
            row = [one["partition"], one["leader_epoch"], one["partition_epoch"], one["isr"], one["isr_epochs"]]
            asked.setdefault(one["topic"], []).append(row + [one["leader_recovery_state"]] * (place % 2))
    if b == 9:
        asked["audit"] = [*asked.get("audit", []), [7, 0, 0, [leader]], [8, 0, 0, [leader]]]
    topics: list[Fields] = [{"topic": topic, "partitions": rows} for topic, rows in asked.items()]
    for named in topics[1:]:
        topic = state.topics.get(named["topic"])
        named["topic_id"] = topic.topic_id if topic and c != 10 else "another"
    fields = {"broker": leader, "broker_epoch": epoch_of(state, leader, b), "topics": topics}
    return "alter_isrs", fields | ({} if c == 1 else {"request_id": a})


def _offset(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    some = some_partition(state, a)
    epoch = max(0, some[1].leader_epoch - (c == 11)) if some else 0
    broker = some[1].replicas[b % len(some[1].replicas)] if some and b < 11 else broker_at(b)
    told = {"broker": broker, "leader_epoch": epoch, "log_end_offset": 3 * c + b}
    return "log_end_offset", of_replica(state, a) | told


def _offsets(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    """Report log ends of all replicas that one broker holds, and sometimes of others."""
    reporter = broker_at(a)
    rows: dict[str, list[list[int]]] = {}
    for place in range(sum(len(topic.partitions) for name in TOPICS if (topic := state.topics.get(name)))):
        some = some_partition(state, place)
        if some is not None and (reporter in some[1].replicas or c == 3):
            topic, held = some
            row = [held.partition, max(0, held.leader_epoch - ((c + place) % 12 == 11)), 3 * ((c + place) % 7) + b]
            rows.setdefault(topic.topic, []).append(row)
    if b == 9:
        rows["audit"] = [*rows.get("audit", []), [7, 0, 0], [0, 0, 5], [0, 0, 8]]
    topics: list[Fields] = [{"topic": topic, "partitions": some} for topic, some in rows.items()]
    for named in topics[1:]:
        found = state.topics.get(named["topic"])
        named["topic_id"] = found.topic_id if found and c != 10 else "another"
    fields = {"broker": reporter, "broker_epoch": epoch_of(state, reporter, b), "topics": topics}
    return "log_end_offsets", fields | ({"request_id": a} if c % 2 else {})


def _report(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    some = some_partition(state, a)
    holders = [*some[1].replicas, *(entry.broker for entry in some[1].removed)] if some else []
    broker = holders[b % len(holders)] if some and b < 11 else broker_at(b)
    if some and broker not in some[1].replicas and b < 11:
        c = 3
    if some and some[0].state != TopicState.created and c < 10:
        c = 3
    outcome = ("leader", "follower", "stopped", "deleted", "offline", "error")[c % 6]
    return "replica_report", of_replica(state, a) | {
        "broker": broker,
        "broker_epoch": epoch_of(state, broker, c),
        "leader_epoch": some[1].leader_epoch if some else 0,
        "outcome": outcome,
        "error": "KAFKA_STORAGE_ERROR" if b % 2 else "FENCED_LEADER_EPOCH",
        "request_id": c if c % 2 else None,
    }


def _deleted(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    """Report the deletion of the first replica that is still to be deleted, in any topic under deletion."""
    for name in TOPICS:
        topic = state.topics.get(name)
        for partition in topic.partitions if topic and topic.state != TopicState.created else ():
            for broker, held in zip(partition.replicas, partition.replica_states, strict=True):
                if held == ReplicaState.ReplicaDeletionStarted:
                    where = {"topic": name, "topic_id": topic.topic_id, "partition": partition.partition}
                    epochs = {"broker_epoch": epoch_of(state, broker, 0), "leader_epoch": -2}
                    return "replica_report", where | epochs | {"broker": broker, "outcome": "deleted"}
    return "tick", {}


def _reassign(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    target = None if c % 4 == 3 else [BROKERS[(b + n) % 4] for n in range(1 + c % 3)]
    if b == 11:
        target = [STRANGER, 1] if c % 2 else [1, 1]
    return "alter_reassignment", where(state, a) | {"replicas": target}


def _delete(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    return "delete_topic", {"topic": TOPICS[a % 5], "request_id": "d"}


def _elect(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    named = [{"topic": topic, "partition": (b + n) % 4} for n, topic in enumerate(TOPICS[a % 5 :])]
    return "elect_leaders", {
        "election_type": "unclean" if c % 3 == 0 else "preferred",
        "partitions": None if b < 5 else named,
    }


def _config(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    entity = ("cluster", "topic", "broker")[a % 3]
    key, values = (
        ("unclean.leader.election.enable", ("true", "false", None, "maybe"))
        if b % 2
        else ("min.insync.replicas", ("1", "2", None, "0"))
    )
    name = {"cluster": None, "topic": TOPICS[b % 5], "broker": str(b)}[entity]
    return "alter_config", {"entity": entity, "name": name, "config": {key: values[c % 4]}}


def _started(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    epoch = state.cluster.controller_epoch + (a > 2)
    settings = {"unclean.leader.election.enable": b % 2 == 0, "min.insync.replicas": c % 3}
    if a % 2:
        settings["metadata.max.idle.interval.ms"] = 1_000 * (b % 3)
    told = {"controller_id": "c", "controller_epoch": epoch, "settings": settings, "is_claim": True if a > 7 else None}
    if c % 2 == 0:
        told["level"] = 2
    return "controller_started", forged(told) if c == 11 else told


def _imbalance(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    counts = {str(broker): [(b + broker) % 4, 4] for broker in (*BROKERS, STRANGER)}
    return "leader_imbalance", {"checked_seq": max(0, state.cluster.imbalance_seq + (c == 11)), "counts": counts}


def _other(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    broker = broker_at(b)
    return (
        ("broker_unregister", {"broker": broker, "request_id": 1}),
        ("broker_connection_lost", {"broker": broker, "broker_epoch": epoch_of(state, broker, c)}),
        ("no_such_kind", {"request_id": a}),
        ("alter_isr", {"topic": TOPICS[b % 5], "isr": [-1]}),
    )[a % 4]


def _tick(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    return "tick", {}


MAKERS: dict[str, Callable[[State, int, int, int], tuple[str, Fields]]] = {
    "register": _register,
    "beat": _beat,
    "shutdown": _shutdown,
    "create": _create,
    "create_partitions": _create_partitions,
    "alter_isr": _alter_isr,
    "alter_isrs": _alter_isrs,
    "offset": _offset,
    "offsets": _offsets,
    **RECOVERIES,
    "report": _report,
    "reports": of_many(_report),
    "reassign": _reassign,
    "delete": _delete,
    "deleted": _deleted,
    "elect": _elect,
    "config": _config,
    "started": _started,
    "imbalance": _imbalance,
    "gateway": _gateway,
    "producer_ids": _producer_ids,
    "level": _level,
    "other": _other,
    "tick": _tick,
    "set_clock": _tick,
    "late": _tick,
    "junk": _tick,
}
