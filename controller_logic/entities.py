"""Change metadata entities, which the rules keep and brokers act on. Only shard 0 keeps them."""

from collections.abc import Iterator, Mapping

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_entity
from controller_logic.config import text_of
from controller_logic.entity_checks import GROUP, check_group_settings, checked
from controller_logic.feature_checks import check_brokers, check_gateways, check_metadata_version
from state.entity import FEATURES, TOKEN, VOTERS, ComplaintError, Entity, entity_id_of
from state.entity_events import AlterEntity
from state.features import KRAFT_VERSION, METADATA_VERSION, newest_metadata_version
from state.registration import Feature

# They are stored as a whole with each batch. All tokens together have these limits, and so do all other entities.
ENTITIES_MAX = 10_000
ENTITIES_BYTES_MAX = 1024 * 1024
_NOTHING: Mapping[str, str] = {}


def alter_entity(batch: Batch, event: AlterEntity) -> None:
    """Set or remove values of an entity, all or none."""
    if _cannot_be_kept(batch, event):
        return
    held = batch.state.entities
    entity_id = entity_id_of(event.entity_type, event.names)
    before = held[entity_id].values if entity_id in held else _NOTHING
    try:
        after = checked(event.entity_type, event.names, before, text_of(event.values))
        entity = Entity(entity_type=event.entity_type, names=dict(sorted(event.names.items())), values=after)
        if event.entity_type == GROUP:
            check_group_settings(after, newest_metadata_version(_features(batch), batch.state.level))
        if event.entity_type == FEATURES:
            check_gateways(batch.state.level, event.values, after)
            _check_levels(batch, before, after)
        if event.entity_type == VOTERS and not before:
            check_brokers(batch.state.brokers.values(), {}, {KRAFT_VERSION: "1"})
        if after != before:
            _check_size(_counted_with(entity, {**held, entity_id: entity}))
    except ComplaintError as complaint:
        batch.recorder.answer(complaint.error, str(complaint))
        return
    if after != before and not event.validate_only:
        commit_entity(batch, entity)
    batch.recorder.answer()


def _features(batch: Batch) -> Iterator[Feature]:
    return (feature for broker in batch.state.brokers.values() for feature in broker.features)


def _check_levels(batch: Batch, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    if _has_log(batch):
        check_metadata_version(before, after)
    check_brokers(batch.state.brokers.values(), before, after)


def _has_log(batch: Batch) -> bool:
    return batch.state.quorum.quorum_epoch > 0


def _cannot_be_kept(batch: Batch, event: AlterEntity) -> bool:
    if event.entity_type == FEATURES and METADATA_VERSION in event.values:
        # Before the log begins, the level with which it begins is chosen.
        return _has_log(batch) and fencing.cannot_be_kept(batch)
    return fencing.cannot_be_kept(batch)


def _counted_with(entity: Entity, after: Mapping[str, Entity]) -> Mapping[str, Entity]:
    """Return the entities that share a limit with ``entity``.

    Every client may make tokens, so they must take no room from what admins need.
    """
    is_token = entity.entity_type == TOKEN
    return {held_id: one for held_id, one in after.items() if (one.entity_type == TOKEN) == is_token}


def _check_size(after: Mapping[str, Entity]) -> None:
    if len(after) > ENTITIES_MAX:
        raise ComplaintError(
            "POLICY_VIOLATION", f"there would be {len(after)} metadata entities: at most {ENTITIES_MAX} are allowed"
        )
    size = sum(
        len(entity_id.encode()) + sum(len(key.encode()) + len(value.encode()) for key, value in one.values.items())
        for entity_id, one in after.items()
    )
    if size > ENTITIES_BYTES_MAX:
        message = f"all metadata entities would have {size} bytes: at most {ENTITIES_BYTES_MAX} are allowed"
        raise ComplaintError("POLICY_VIOLATION", message)
