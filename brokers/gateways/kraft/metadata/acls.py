"""Translate decisions about ACLs into metadata records."""

from collections.abc import Iterator

from brokers.gateways.kraft.metadata.acl_numbers import values_of
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.record_frame import Record
from state.acl import Acl
from state.decisions import AclsDecision

ACL_VERSION = 0
REMOVE_ACL_VERSION = 0


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
