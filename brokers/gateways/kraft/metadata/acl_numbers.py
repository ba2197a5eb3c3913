"""Kafka's numbers for the parts of an ACL (``AclOperation`` and the like)."""

from collections.abc import Mapping
from typing import Any

import msgspec

from state.acl import Acl

RESOURCE_TYPES = {"TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5, "DELEGATION_TOKEN": 6, "USER": 7}
PATTERN_TYPES = {"LITERAL": 3, "PREFIXED": 4}
OPERATIONS = {
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
    "CREATE_TOKENS": 13,
    "DESCRIBE_TOKENS": 14,
    "TWO_PHASE_COMMIT": 15,
}
PERMISSION_TYPES = {"DENY": 2, "ALLOW": 3}
# Only in filters. ``ANY`` matches every value. ``MATCH`` selects the patterns that fit the named resource.
ANY = 1
MATCH = 2
# The names by their numbers.
RESOURCE_NAMES, PATTERN_NAMES, OPERATION_NAMES, PERMISSION_NAMES = (
    {number: name for name, number in numbers.items()}
    for numbers in (RESOURCE_TYPES, PATTERN_TYPES, OPERATIONS, PERMISSION_TYPES)
)


def acl_of(values: Mapping[str, Any], pattern_type: str = "PatternType") -> Acl:
    """Read an ACL from a record or a request. ``pattern_type`` names the field that has the pattern's type.

    Raises ``ValueError``, which names the invalid value.
    """
    fields = {
        "resource_type": RESOURCE_NAMES.get(values["ResourceType"], values["ResourceType"]),
        "resource_name": values["ResourceName"],
        "pattern_type": PATTERN_NAMES.get(values[pattern_type], values[pattern_type]),
        "principal": values["Principal"],
        "host": values["Host"],
        "operation": OPERATION_NAMES.get(values["Operation"], values["Operation"]),
        "permission_type": PERMISSION_NAMES.get(values["PermissionType"], values["PermissionType"]),
    }
    return msgspec.convert(fields, Acl)


def values_of(acl: Acl) -> dict[str, Any]:
    """Write an ACL as the fields that records and responses have."""
    return {
        "ResourceType": RESOURCE_TYPES[acl.resource_type],
        "ResourceName": acl.resource_name,
        "PatternType": PATTERN_TYPES[acl.pattern_type],
        "Principal": acl.principal,
        "Host": acl.host,
        "Operation": OPERATIONS[acl.operation],
        "PermissionType": PERMISSION_TYPES[acl.permission_type],
    }
