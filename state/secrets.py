"""Decisions as people see them, without secrets."""

from msgspec.structs import replace

from state.decisions import EntityDecision, decode, encode
from state.entity import SECRET, shown_values

_SECRET = SECRET.encode()


def without_secrets(body: bytes) -> bytes:
    """Return a decision's text, with ``[hidden]`` in the place of each secret value."""
    if _SECRET not in body:
        return body
    decision = decode(body)
    if not isinstance(decision, EntityDecision):
        return body
    return encode(replace(decision, values=shown_values(decision.entity_type, decision.values)))
