"""Commit what a rule decided about anything but topics.

Every function takes the value as it is from now on and does two steps of the pipeline that ``commit`` describes: apply
and record. There is nothing to settle or count, and no invariant ties two of these values together.
"""

from collections.abc import Mapping
from itertools import starmap

from msgspec.structs import asdict, replace

from controller_logic.batch import Batch
from state.acl import Acl, with_id
from state.broker import Broker
from state.decisions import AclsDecision, EntityDecision, LevelDecision, NoOp, ProducerIds, QuorumDecision
from state.entity import Entity, entity_id_of
from state.ids import NO_TIME
from state.metadata_quorum import Gateway, Quorum
from state.reason import Reason
from state.shadow import Shadow

NO_CHECK = -1
_NONE: Mapping[str, Acl] = {}


def commit_broker(batch: Batch, broker: Broker, reason: Reason | None = None) -> None:
    """Commit a broker, or remove it if its state is ``unregistered``. Without a reason no decision is recorded."""
    batch.state.put_broker(broker)
    if reason is not None:
        batch.recorder.say_broker(broker, reason)


def commit_remaining(batch: Batch, broker: Broker, remaining: int) -> None:
    """Record how many leaderships of this shard ``broker`` still has to hand over before it may shut down."""
    batch.recorder.say_remaining(broker, remaining)


def commit_gateway(batch: Batch, gateway: Gateway) -> None:
    """Commit a gateway. No decision is recorded, because the decision on the quorum says what brokers need."""
    batch.state.put_gateways({**batch.state.gateways, gateway.gateway: gateway})


def commit_quorum(batch: Batch, quorum: Quorum) -> None:
    """Commit what is known of the quorum within its epoch. No decision is recorded."""
    batch.state.quorum = quorum


def commit_quorum_epoch(batch: Batch, quorum: Quorum, reason: Reason) -> None:
    """Commit a new epoch of the quorum."""
    batch.state.quorum = quorum
    told = {"voter": quorum.voter, "incarnation": quorum.incarnation, "voters": quorum.voters}
    batch.recorder.say(QuorumDecision, reason, **told, quorum_epoch=quorum.quorum_epoch)


def commit_no_op(batch: Batch, quorum: Quorum) -> None:
    """Commit that the idle metadata log gets a record."""
    batch.state.quorum = quorum
    batch.recorder.say(NoOp, Reason.MAX_IDLE_INTERVAL)


def commit_balance(batch: Batch, due_ms: int, imbalance_seq: int) -> None:
    """Commit when leaders are next counted, and which tick's count has yet to come back."""
    batch.state.balance_due_ms, batch.state.imbalance_seq = due_ms, imbalance_seq


def commit_imbalance(batch: Batch, next_due_ms: int, counts: Mapping[int, tuple[int, int]]) -> None:
    """Commit what this tick counted."""
    commit_balance(batch, next_due_ms, batch.state.seq)
    batch.recorder.say_imbalance(counts)


def commit_producer_ids(batch: Batch, broker: Broker, next_producer_id: int) -> None:
    """Commit that a broker got the producer ids below ``next_producer_id``."""
    batch.state.next_producer_id = next_producer_id
    ids = {"broker": broker.broker, "broker_epoch": broker.broker_epoch, "next_producer_id": next_producer_id}
    batch.recorder.say(ProducerIds, Reason.PRODUCER_IDS_ALLOCATED, **ids)


def commit_clock(batch: Batch, now_ms: int, entered_ms: int) -> None:
    """Commit the engine's clock, and the bus's time at which the event that set it came."""
    batch.state.now_ms, batch.state.clock_entered_ms = now_ms, entered_ms


def commit_recovery_due(batch: Batch, topic: str, partition: int, due_ms: int) -> None:
    """Commit until when a partition waits for the logs of crashed members. No decision is recorded."""
    batch.state.recoveries_due[topic, partition] = due_ms


def commit_claim(
    batch: Batch, controller_id: str, controller_epoch: int, level: int, *, has_engine_clock: bool
) -> None:
    """Commit a claim. From here on decisions are made in its name."""
    batch.state.controller_id, batch.state.controller_epoch = controller_id, controller_epoch
    batch.state.engine_level = level
    batch.state.has_engine_clock = has_engine_clock


def commit_level(batch: Batch, level: int) -> None:
    """Commit the level. Silent gateways that do not support it must start again, and are refused then."""
    state = batch.state
    state.level = level
    state.put_gateways({number: held for number, held in state.gateways.items() if held.level >= level})
    batch.recorder.say(LevelDecision, Reason.LEVEL_RAISED, level=level)


def commit_shadow(batch: Batch, shadow: Shadow, now_ms: int) -> None:
    """Commit how far a cluster was observed, and its time. The bus's own time says nothing about that."""
    batch.state.shadow = shadow
    commit_clock(batch, now_ms, NO_TIME)


def commit_static_settings(batch: Batch, shadow: Shadow) -> None:
    """Commit what an observed controller told of its file. No decision follows: it was so before."""
    batch.state.shadow = shadow
    batch.state.put_settings(batch.state.settings, batch.state.config)


def commit_settings(batch: Batch, settings: dict[str, str], config: dict[str, str]) -> None:
    """Commit the claim's settings and the cluster's dynamic ones. ``commit_announced_settings`` announces them."""
    batch.state.put_settings(settings, config)


def commit_announced_settings(batch: Batch, in_force: dict[str, str], set_again: tuple[str, ...]) -> None:
    """Commit the announcement of the cluster's settings, with those in force if there is a metadata log."""
    batch.state.in_force = in_force
    batch.recorder.say_config("cluster", None, batch.state.config, in_force=in_force, set_again=set_again)


def commit_acls(
    batch: Batch, acls: dict[str, Acl], *, created: Mapping[str, Acl] = _NONE, deleted: Mapping[str, Acl] = _NONE
) -> None:
    """Commit all ACLs as they are from now on, and record those that were created or deleted."""
    batch.state.acls = acls
    added, removed = (tuple(starmap(with_id, some.items())) for some in (created, deleted))
    batch.recorder.say(AclsDecision, Reason.ACLS_CHANGED, created=added, deleted=removed)


def commit_entity(batch: Batch, entity: Entity) -> None:
    """Commit a metadata entity as it is from now on. Without values it is gone."""
    entity_id = entity_id_of(entity.entity_type, entity.names)
    others = {held_id: held for held_id, held in batch.state.entities.items() if held_id != entity_id}
    batch.state.entities = dict(sorted((others | ({entity_id: entity} if entity.values else {})).items()))
    batch.recorder.say(EntityDecision, Reason.ENTITY_CHANGED, **asdict(entity))


def commit_expired(batch: Batch, expired: Mapping[str, Entity]) -> None:
    """Commit that some metadata entities, by their ids, are gone, because their time is over."""
    batch.state.entities = {held_id: one for held_id, one in batch.state.entities.items() if held_id not in expired}
    for one in expired.values():
        batch.recorder.say(EntityDecision, Reason.TOKEN_EXPIRED, **asdict(replace(one, values={})))


def commit_broker_config(batch: Batch, name: str, config: dict[str, str], set_again: tuple[str, ...]) -> None:
    others = {broker: held for broker, held in batch.state.broker_config.items() if broker != name}
    batch.state.broker_config = dict(sorted((others | ({name: config} if config else {})).items()))
    batch.recorder.say_config("broker", name, config, set_again=set_again)
