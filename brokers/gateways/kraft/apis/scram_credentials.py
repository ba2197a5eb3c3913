"""Admins' requests about SCRAM credentials (AlterUserScramCredentials; KIP-554). Brokers describe credentials.

A client sends the salted password. Anyone who has it can log in, so it goes no further than this file: the engine gets
what a broker needs to verify a password.
"""

import base64
from collections import Counter
from collections.abc import Iterable

from brokers.gateways.kraft.apis.outcomes import responses_to
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.entity_values import MECHANISM_NAMES
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.schema import Values
from brokers.wire.security.scram import verifier_of_salted
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.events import AlterEntity

_PARTS = ("iterations", "salt", "server_key", "stored_key")
_TWICE = RefusedError(ErrorCode.DUPLICATE_RESOURCE, "the request names this user twice")


async def alter_user_scram_credentials(context: Context, request: Request, peer: Peer) -> Values:
    """Set and remove credentials, user by user. A user who is named twice keeps the present credentials."""
    deletions, upsertions = request.values["Deletions"], request.values["Upsertions"]
    times = Counter(one["Name"] for one in (*deletions, *upsertions))
    outcomes: dict[str, AlterEntity | RefusedError] = {name: _TWICE for name, count in times.items() if count > 1}
    for one in _once(deletions, times):
        outcomes[one["Name"]] = _event(one, dict.fromkeys(_PARTS))
    for one in _once(upsertions, times):
        outcomes[one["Name"]] = _upsertion(one)
    return {"Results": await responses_to(context, request, outcomes, lambda user, error: {"User": user} | error)}


def _once(listed: Iterable[Values], times: Counter[str]) -> Iterable[Values]:
    return (one for one in listed if times[one["Name"]] == 1)


def _event(one: Values, values: dict[str, str | int | float | bool | None]) -> AlterEntity | RefusedError:
    if not one["Name"]:
        return RefusedError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of the user is empty")
    mechanism = MECHANISM_NAMES.get(one["Mechanism"])
    if mechanism is None:
        return RefusedError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "there is no such SCRAM mechanism")
    names: dict[str, str | None] = {"mechanism": mechanism, "user": one["Name"]}
    return AlterEntity(time_ms=now_ms(), entity_type="scram_credential", names=names, values=values)


def _upsertion(one: Values) -> AlterEntity | RefusedError:
    mechanism = MECHANISM_NAMES.get(one["Mechanism"])
    if mechanism is None or not one["Name"]:
        return _event(one, {})
    if not one["SaltedPassword"]:
        return RefusedError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the salted password is empty")
    verifier = verifier_of_salted(mechanism, one["SaltedPassword"], one["Salt"], one["Iterations"])
    return _event(
        one,
        {
            "iterations": verifier.iterations,
            "salt": base64.b64encode(verifier.salt).decode(),
            "server_key": base64.b64encode(verifier.server_key).decode(),
            "stored_key": base64.b64encode(verifier.stored_key).decode(),
        },
    )
