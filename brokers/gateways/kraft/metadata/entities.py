"""Translate decisions about metadata entities and ACLs into metadata records."""

from collections.abc import Iterator, Mapping

from brokers.gateways.kraft.metadata.acl_numbers import values_of
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.entity_values import ENTITY_RESOURCES, quota_record, scram_record, token_record
from brokers.gateways.kraft.metadata.image import NO_QUORUM
from brokers.gateways.kraft.metadata.topics import config_record, feature_record
from brokers.wire.metadata.record_frame import Record
from state.acl import Acl
from state.decisions import AclsDecision, EntityDecision
from state.entity import FEATURES, SECRET, TOKEN, Entity, entity_id_of

ACL_VERSION = 0
REMOVE_ACL_VERSION = 0
# The types that have one record for all values.
_WHOLE = {SECRET: scram_record, TOKEN: token_record}


def entity_records(draft: MetadataDraft, decision: EntityDecision) -> Iterator[Record]:
    """Yield a record for each change to an entity."""
    if decision.entity_type in ENTITY_RESOURCES:
        resource_type, part = ENTITY_RESOURCES[decision.entity_type]
        resource = (resource_type, decision.names[part] or "")
        for key, value in _differences(draft.configs.get(resource, {}), decision.values):
            yield config_record(resource, key, value)
        return
    if decision.entity_type == FEATURES:
        for feature, level in sorted(decision.values.items()):
            # A log that has not begun yet begins with levels other than 0.
            absent = None if draft.quorum_epoch == NO_QUORUM else 0
            if draft.features.get(feature, absent) != int(level):
                yield feature_record(feature, int(level))
        return
    held = draft.entities.get(entity_id_of(decision.entity_type, decision.names))
    entity = Entity(entity_type=decision.entity_type, names=decision.names, values=decision.values)  # type: ignore[arg-type]
    yield from changes_of(entity, held.values if held else {})


def changes_of(entity: Entity, held: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records that replace the ``held`` values of an entity with its own."""
    whole = _WHOLE.get(entity.entity_type)
    if whole is not None:
        if entity.values != held:
            yield whole(entity.names, entity.values)
        return
    for key, value in _differences(held, entity.values):
        yield quota_record(entity.names, key, value)


def _differences(held: Mapping[str, str], values: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    for key in sorted({*held, *values}):
        if values.get(key) != held.get(key):
            yield key, values.get(key)


def acl_records(draft: MetadataDraft, decision: AclsDecision) -> Iterator[Record]:
    """Yield the removal of deleted ACLs, and then the new ones."""
    for acl in decision.deleted:
        if acl.acl_id in draft.acls:
            yield Record("RemoveAccessControlEntryRecord", REMOVE_ACL_VERSION, {"Id": acl.acl_id})
    for acl in decision.created:
        if acl.acl_id not in draft.acls:
            yield acl_record(acl.acl_id, acl)


def acl_record(acl_id: str, acl: Acl) -> Record:
    """Return the record of one ACL."""
    return Record("AccessControlEntryRecord", ACL_VERSION, {"Id": acl_id} | values_of(acl))
