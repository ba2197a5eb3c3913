"""Admins' requests about the levels of features (UpdateFeatures; KIP-584)."""

from collections import Counter

from brokers.gateways.kraft.context import Context, text
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.refusals import refusal_of
from brokers.wire.errors import ErrorCode, RefusedError, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.entity import FEATURES
from state.events import AlterEntity
from state.features import METADATA_VERSION, SUPPORTED, not_supported

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
# Answers have results of each feature up to this version.
_RESULTS_VERSION_MAX = 1


async def update_features(context: Context, request: Request, peer: Peer) -> Values:
    """Change levels, all or none."""
    updates = request.values["FeatureUpdates"]
    twice = [feature for feature, count in Counter(one["Feature"] for one in updates).items() if count > 1]
    if twice:
        return refusal_of(request, ErrorCode.INVALID_REQUEST, f"{twice[0]} is named more than once")
    try:
        for one in updates:
            _check(context, one, _upgrade_type(request, one))
    except RefusedError as refusal:
        return refusal_of(request, refusal.code, str(refusal))
    levels = {one["Feature"]: one["MaxVersionLevel"] for one in updates}
    event = AlterEntity(
        time_ms=now_ms(),
        entity_type=FEATURES,
        names={},
        values={**levels},
        validate_only=bool(request.values.get("ValidateOnly")),
    )
    [answer] = await context.ask_as_admin(request, [event])
    if answer.error != "NONE":
        return refusal_of(request, code_of(answer.error), text(answer))
    has_results = request.version <= _RESULTS_VERSION_MAX
    return {"ErrorCode": ErrorCode.NONE, "Results": [{"Feature": one} for one in levels] if has_results else []}


def _upgrade_type(request: Request, update: Values) -> int:
    if request.version == 0:
        return _SAFE_DOWNGRADE if update["AllowDowngrade"] else _UPGRADE
    return int(update["UpgradeType"])


def _check(context: Context, update: Values, upgrade_type: int) -> None:
    """Check what the request says of one feature against its present level. The rules ask the brokers' support."""
    feature, level = update["Feature"], update["MaxVersionLevel"]
    present = context.image.features.get(feature, 0)
    if upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        why: str | None = "there is no such type of upgrade"
    elif level < 0:
        why = "a level is a number from 0 on"
    elif feature == METADATA_VERSION and level < present and upgrade_type != _UPGRADE:
        why = "metadata could be lost at a lower level"
    elif level < present and upgrade_type == _UPGRADE:
        why = f"it is at {present} now, and the request does not allow a downgrade"
    elif level > present and upgrade_type != _UPGRADE:
        why = f"it is at {present} now, and the request is a downgrade"
    else:
        why = not_supported(f"gateway {context.identity.gateway}", SUPPORTED.get(feature), level)
    if why is not None:
        raise RefusedError(ErrorCode.INVALID_UPDATE_VERSION, f"{feature} cannot have level {level}: {why}")
