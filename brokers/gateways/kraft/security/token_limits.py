"""The limits on one owner's delegation tokens. Kafka has none. Pure.

The engine keeps all tokens within one limit (``controller_logic.entities``). Every client may make tokens of its own.
So without limits one client could leave no room for the tokens of others, and no admin could end its tokens.
"""

from collections.abc import Iterable, Mapping

from brokers.gateways.kraft.metadata.entity_values import renewers_of
from brokers.wire.errors import ErrorCode, RefusedError
from state.entity import TOKEN, Entity, entity_id_of

# Of one owner: a tenth of what the engine keeps in all.
OWNER_TOKENS_MAX = 1_000
OWNER_BYTES_MAX = 100 * 1024
# Of one token.
RENEWERS_BYTES_MAX = 4 * 1024


def check_limits(token: Entity, held: Iterable[Entity]) -> None:
    """Refuse a new token if it, or with it its owner's tokens among ``held``, would be too large.

    Raises ``RefusedError`` with POLICY_VIOLATION.
    """
    renewers = sum(len(one.encode()) for one in renewers_of(token.values))
    if renewers > RENEWERS_BYTES_MAX:
        raise _refused(f"the renewers have {renewers} bytes: at most {RENEWERS_BYTES_MAX} are allowed")
    owner = token.values["owner"]
    owned = [token, *(one for one in held if one.entity_type == TOKEN and one.values["owner"] == owner)]
    if len(owned) > OWNER_TOKENS_MAX:
        raise _refused(f"{owner} would have {len(owned)} tokens: at most {OWNER_TOKENS_MAX} are allowed")
    size = sum(_size(one.names, one.values) for one in owned)
    if size > OWNER_BYTES_MAX:
        raise _refused(f"the tokens of {owner} would have {size} bytes: at most {OWNER_BYTES_MAX} are allowed")


def _size(names: Mapping[str, str | None], values: Mapping[str, str]) -> int:
    """Return a token's size in bytes as the engine counts it."""
    inside = sum(len(key.encode()) + len(value.encode()) for key, value in values.items())
    return len(entity_id_of(TOKEN, names).encode()) + inside


def _refused(message: str) -> RefusedError:
    return RefusedError(ErrorCode.POLICY_VIOLATION, message)
