"""The requests to change ACLs and metadata entities."""

from typing import Annotated

from msgspec import Meta

from state.acl import Acl, AclFilter
from state.entity import EntityType, Names
from state.event import AdminEvent
from state.limits import Config


class CreateAcls(AdminEvent, frozen=True, kw_only=True, tag="create_acls"):
    """An admin adds ACLs, all or none. Existing ones stay as they are."""

    acls: Annotated[tuple[Acl, ...], Meta(max_length=10_000)]


class DeleteAcls(AdminEvent, frozen=True, kw_only=True, tag="delete_acls"):
    """An admin removes the ACLs that any of the filters selects."""

    filters: Annotated[tuple[AclFilter, ...], Meta(max_length=10_000)]


class AlterEntity(AdminEvent, frozen=True, kw_only=True, tag="alter_entity"):
    """An admin sets or removes values of a metadata entity, all or none."""

    entity_type: EntityType
    # What names it, part by part. A null name is the default of its kind.
    names: Names
    # A null value removes the one in place.
    values: Config
    validate_only: bool = False


# Shard 0 keeps what they change.
ENTITY_EVENTS = (CreateAcls, DeleteAcls, AlterEntity)
