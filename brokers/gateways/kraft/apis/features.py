"""The levels of features, and admins' requests to change them (UpdateFeatures; KIP-584, KIP-853)."""

from collections import Counter

from msgspec.structs import replace

from brokers.gateways.kraft import announced_voters
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.acl_numbers import RESOURCE_TYPES
from brokers.gateways.shared.apis.asking import text
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode, RefusedError, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.acl import CLUSTER_NAME
from state.entity import FEATURES
from state.events import AlterConfig, AlterEntity
from state.features import (
    ELIGIBLE_SINCE,
    ELIGIBLE_VERSION,
    KRAFT_LEVELS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SERVED,
    not_supported,
)
from state.limits import Scalar

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
# Up to this version of UpdateFeatures, a response has a result for each feature.
_RESULTS_VERSION_MAX = 1
# The features whose levels are never lowered, and why.
_NEVER_LOWERED = {
    METADATA_VERSION: "metadata could be lost at a lower level",
    KRAFT_VERSION: "brokers rely on the voters in the metadata log",
}


def levels_of(context: Context) -> dict[str, int]:
    """Return the finalized levels. A log that names its voters has kraft.version 1."""
    return {**context.image.features, KRAFT_VERSION: KRAFT_LEVELS.high if context.logged_voters else KRAFT_LEVELS.low}


async def update_features(context: Context, request: Request, peer: Peer) -> Values:
    """Change levels, all or none, one request after another: each is checked against the present levels."""
    async with context.locks.hold([(RESOURCE_TYPES["CLUSTER"], CLUSTER_NAME)]):
        return await _updated(context, request)


async def _updated(context: Context, request: Request) -> Values:
    updates = request.values["FeatureUpdates"]
    twice = [feature for feature, count in Counter(one["Feature"] for one in updates).items() if count > 1]
    if twice:
        return refusal_of(request, ErrorCode.INVALID_REQUEST, f"{twice[0]} is named more than once")
    try:
        for one in updates:
            _check(context, one, _upgrade_type(request, one))
        _check_metadata_version(context, {one["Feature"]: one["MaxVersionLevel"] for one in updates})
    except RefusedError as refusal:
        return refusal_of(request, refusal.code, str(refusal))
    levels = {one["Feature"]: one["MaxVersionLevel"] for one in updates}
    # No event changes levels, a setting and voters together, so all are checked before the first one changes anything.
    events = _events(context, levels)
    checks = [replace(event, validate_only=True) for event in events]
    changes = [] if request.values.get("ValidateOnly") else events
    for event in [*(checks if len(checks) > 1 or not changes else []), *changes]:
        [answer] = await context.ask_as_admin(request, [event])
        if answer.error == "INVALID_CONFIG":
            return refusal_of(request, ErrorCode.INVALID_UPDATE_VERSION, text(answer))
        if answer.error != "NONE":
            return refusal_of(request, code_of(answer.error), text(answer))
    has_results = request.version <= _RESULTS_VERSION_MAX
    return {"ErrorCode": ErrorCode.NONE, "Results": [{"Feature": one} for one in levels] if has_results else []}


def _events(context: Context, levels: dict[str, int]) -> list[AlterEntity | AlterConfig]:
    """Return the events that change levels.

    ``kraft.version`` 1 means that the log has voters, and the level of eligible leader replicas is a setting.
    """
    kept = {name: level for name, level in levels.items() if name not in (KRAFT_VERSION, ELIGIBLE_VERSION)}
    events: list[AlterEntity | AlterConfig] = []
    if kept or not levels:
        events.append(AlterEntity(time_ms=now_ms(), entity_type=FEATURES, names={}, values={**kept}))
    if ELIGIBLE_VERSION in levels:
        config: dict[str, Scalar] = {ELIGIBLE_VERSION: str(levels[ELIGIBLE_VERSION])}
        events.append(AlterConfig(time_ms=now_ms(), entity="cluster", config=config))
    if levels.get(KRAFT_VERSION):
        events.append(announced_voters.request(context))
    return events


def _upgrade_type(request: Request, update: Values) -> int:
    if request.version == 0:
        return _SAFE_DOWNGRADE if update["AllowDowngrade"] else _UPGRADE
    return int(update["UpgradeType"])


def _check(context: Context, update: Values, upgrade_type: int) -> None:
    """Check what the request says of one feature against its present level. The rules check that brokers support it."""
    feature, level = update["Feature"], update["MaxVersionLevel"]
    present = levels_of(context).get(feature, 0)
    if upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        why: str | None = "there is no such type of upgrade"
    elif level < 0:
        why = "a level is a number from 0 on"
    elif feature in _NEVER_LOWERED and level < present and upgrade_type != _UPGRADE:
        why = _NEVER_LOWERED[feature]
    elif level < present and upgrade_type == _UPGRADE:
        why = f"it is at {present} now, and the request does not allow a downgrade"
    elif level > present and upgrade_type != _UPGRADE:
        why = f"it is at {present} now, and the request is a downgrade"
    else:
        why = not_supported(f"gateway {context.identity.gateway}", SERVED.get(feature), level)
    if why is not None:
        raise RefusedError(ErrorCode.INVALID_UPDATE_VERSION, f"{feature} cannot have level {level}: {why}")


def _check_metadata_version(context: Context, levels: dict[str, int]) -> None:
    """Check that the metadata version has eligible leader replicas, if they are turned on."""
    if levels.get(ELIGIBLE_VERSION):
        held = max(levels.get(METADATA_VERSION, 0), levels_of(context).get(METADATA_VERSION, 0))
        if held < ELIGIBLE_SINCE:
            why = f"it needs {METADATA_VERSION} {ELIGIBLE_SINCE}, and that is at {held}"
            raise RefusedError(ErrorCode.INVALID_UPDATE_VERSION, f"{ELIGIBLE_VERSION} cannot have level 1: {why}")
