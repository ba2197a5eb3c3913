"""Access control entries (ACLs), and filters that select some of them, in Kafka's words (``AclBinding``).

An ACL allows or denies an operation on resources to a principal from a host. The engine only keeps
ACLs; brokers and gateways enforce them.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from state.ids import UUID_BYTES, as_uuid
from state.limits import Text

ResourceType = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
PatternType = Literal["LITERAL", "PREFIXED"]
Operation = Literal[
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
]
PermissionType = Literal["ALLOW", "DENY"]

# As the name of a resource or as a host: any.
WILDCARD = "*"
# The one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"


class Acl(msgspec.Struct, frozen=True, kw_only=True):
    """One entry."""

    resource_type: ResourceType
    # The name, or what names begin with; * as a literal name is every resource of the type.
    resource_name: Annotated[str, Meta(min_length=1, max_length=4_096)]
    pattern_type: PatternType
    # In Kafka's form. User:* is every user.
    principal: Annotated[str, Meta(max_length=4_096, pattern=r"^[^:]+:")]
    # An address, or * for any.
    host: Annotated[str, Meta(min_length=1, max_length=1_024)]
    operation: Operation
    permission_type: PermissionType


class AclWithId(Acl, frozen=True, kw_only=True):
    """An entry with its id, by which the metadata log removes it."""

    # Equal entries have one id.
    acl_id: str


class AclFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of entries (``AclBindingFilter``). A null field matches any value."""

    resource_type: ResourceType | None = None
    resource_name: Text | None = None
    # MATCH selects the patterns that apply to a resource of the given name.
    pattern_type: Literal["LITERAL", "PREFIXED", "MATCH"] | None = None
    principal: Text | None = None
    host: Text | None = None
    operation: Operation | None = None
    permission_type: PermissionType | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the filter can select at most one entry."""
        return self.pattern_type != "MATCH" and None not in msgspec.structs.astuple(self)

    def selects(self, acl: Acl) -> bool:
        """Return whether the filter selects an entry."""
        wanted = (self.resource_type, self.principal, self.host, self.operation, self.permission_type)
        given = (acl.resource_type, acl.principal, acl.host, acl.operation, acl.permission_type)
        return all(one in (None, other) for one, other in zip(wanted, given, strict=True)) and self._selects_name(acl)

    def _selects_name(self, acl: Acl) -> bool:
        name, pattern_type = self.resource_name, self.pattern_type
        if pattern_type not in (None, "MATCH", acl.pattern_type):
            return False
        if name is None:
            return True
        if pattern_type != "MATCH":
            return name == acl.resource_name
        if acl.pattern_type == "PREFIXED":
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, WILDCARD)


def acl_id_of(acl: Acl | AclFilter) -> str:
    """Derive an entry's id from its content, as Kafka prints a Uuid. An exact filter has the id of its entry."""
    parts = (
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
    return as_uuid(hashlib.sha256(msgspec.json.encode(parts)).digest()[:UUID_BYTES])


def with_id(acl_id: str, acl: Acl) -> AclWithId:
    return AclWithId(acl_id=acl_id, **msgspec.structs.asdict(acl))


def selected(acls: Mapping[str, Acl], wanted: AclFilter) -> dict[str, Acl]:
    """Return the entries of ``acls`` that a filter selects, by id."""
    if wanted.is_exact:
        acl_id = acl_id_of(wanted)
        return {acl_id: acls[acl_id]} if acl_id in acls else {}
    return {acl_id: acl for acl_id, acl in acls.items() if wanted.selects(acl)}
