"""The events in which admins change ACLs."""

from typing import Annotated

from msgspec import Meta

from state.acl import Acl, AclFilter
from state.event import AdminEvent


class CreateAcls(AdminEvent, frozen=True, kw_only=True, tag="create_acls"):
    """An admin adds ACLs, all or none. Existing ones stay as they are."""

    acls: Annotated[tuple[Acl, ...], Meta(max_length=10_000)]


class DeleteAcls(AdminEvent, frozen=True, kw_only=True, tag="delete_acls"):
    """An admin removes the ACLs that any of the filters selects."""

    filters: Annotated[tuple[AclFilter, ...], Meta(max_length=10_000)]


ACL_EVENTS = (CreateAcls, DeleteAcls)
