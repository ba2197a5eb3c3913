"""Add and remove ACLs (``AclControlManager``). Only shard 0 keeps them."""

from collections.abc import Mapping

import msgspec

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_acls
from state.acl import CLUSTER_NAME, Acl, acl_id_of, selected
from state.entity_events import CreateAcls, DeleteAcls

# They are stored as a whole with each batch.
ACLS_MAX = 10_000
ACLS_BYTES_MAX = 1024 * 1024
# Filters that are compared with every ACL.
OPEN_FILTERS_MAX = 100


def create_acls(batch: Batch, event: CreateAcls) -> None:
    """Add ACLs, all or none."""
    if fencing.cannot_be_kept(batch):
        return
    if any(acl.resource_type == "CLUSTER" and acl.resource_name != CLUSTER_NAME for acl in event.acls):
        batch.recorder.answer("INVALID_REQUEST", f"the only resource of type CLUSTER is {CLUSTER_NAME}")
        return
    held = batch.state.acls
    created = {acl_id: acl for acl in event.acls if (acl_id := acl_id_of(acl)) not in held}
    after = dict(sorted((held | created).items()))
    complaint = _complaint_about_size(after) if created else None
    if complaint is not None:
        batch.recorder.answer("POLICY_VIOLATION", complaint)
        return
    if created:
        commit_acls(batch, after, created=created)
    batch.recorder.answer()


def delete_acls(batch: Batch, event: DeleteAcls) -> None:
    """Remove ACLs. The answer names them."""
    if fencing.cannot_be_kept(batch):
        return
    open_filters = sum(not one.is_exact for one in event.filters)
    if open_filters > OPEN_FILTERS_MAX:
        message = f"{open_filters} filters leave something open: at most {OPEN_FILTERS_MAX} may"
        batch.recorder.answer("POLICY_VIOLATION", message)
        return
    held = batch.state.acls
    gone: set[str] = set()
    for wanted in event.filters:
        gone |= selected(held, wanted).keys()
    deleted = {acl_id: held[acl_id] for acl_id in sorted(gone)}
    if deleted:
        commit_acls(batch, {acl_id: acl for acl_id, acl in held.items() if acl_id not in gone}, deleted=deleted)
    batch.recorder.answer(acls=tuple(deleted.values()))


def _complaint_about_size(after: Mapping[str, Acl]) -> str | None:
    if len(after) > ACLS_MAX:
        return f"there would be {len(after)} ACLs: at most {ACLS_MAX} are allowed"
    size = sum(len(part.encode()) for acl in after.values() for part in msgspec.structs.astuple(acl))
    if size > ACLS_BYTES_MAX:
        return f"all ACLs together would have {size} bytes: at most {ACLS_BYTES_MAX} are allowed"
    return None
