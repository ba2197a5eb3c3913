"""Metadata entities: an admin sets them, the engine keeps them, and only brokers act on them.

An entity has a type, parts that name it, and values. So one event, one decision and one place in the state serve all
types, and each type has its own checks (``controller_logic.entity_checks``).
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from state.limits import Name, Text

# client_quota: named by user, client-id or ip (KIP-546); null is the default of its kind.
# group, client_metrics: dynamic settings of a group, and of a subscription to clients' metrics (KIP-714).
# scram_credential: named by user and mechanism (KIP-554); the values are secret.
# features: the one entity of its type; its values are the levels that were changed (KIP-584).
# delegation_token: named by token-id (KIP-48); what proves a token is not among its values.
# voters: the one entity of its type, there from kraft.version 1 on; its values are where each voter is (KIP-853).
EntityType = Literal[
    "client_quota", "group", "client_metrics", "scram_credential", "features", "delegation_token", "voters"
]
SECRET: EntityType = "scram_credential"
TOKEN: EntityType = "delegation_token"
FEATURES: EntityType = "features"
VOTERS: EntityType = "voters"
# The part of its name, and the value that changes: the time from which on a token is no longer good.
TOKEN_ID, TOKEN_EXPIRY = "token-id", "expiry_timestamp_ms"
# Shown to people in place of a secret value.
HIDDEN = "[hidden]"

Names = Annotated[dict[Name, Text | None], Meta(max_length=8)]


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """One entity. An entity without values does not exist."""

    entity_type: EntityType
    names: dict[str, str | None]
    values: dict[str, str]


class ComplaintError(Exception):
    """A change that cannot be made, with Kafka's name of the error."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


def entity_id_of(entity_type: str, names: Mapping[str, str | None]) -> str:
    """Return what identifies an entity. The order in which its parts are named does not count."""
    return msgspec.json.encode((entity_type, sorted(names.items()))).decode()


# There is one entity of each of these types.
VOTERS_ID = entity_id_of(VOTERS, {})


def named(names: Mapping[str, str | None]) -> str:
    """Return an entity's name for people, as ``user alice, client-id (default)``."""
    return (
        ", ".join(f"{part} {'(default)' if name is None else name}" for part, name in sorted(names.items()))
        or "the cluster"
    )


def shown_values(entity_type: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return an entity's values for people, without secrets."""
    return dict.fromkeys(values, HIDDEN) if entity_type == SECRET else dict(values)
