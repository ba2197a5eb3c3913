"""The requests of a broker's life (Kafka's ``ControllerApis``: BrokerRegistration, BrokerHeartbeat)."""

import contextlib
from collections.abc import Sequence

import structlog
from msgspec import UNSET, UnsetType

from brokers.gateways.kraft.apis.features import levels_of
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.following.quorum_view import BrokerView
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.draft import registration_of
from brokers.gateways.kraft.metadata.image import Registration, knows_cordoning, metadata_version_of
from brokers.gateways.kraft.metadata.uuids import is_reserved
from brokers.gateways.shared.apis.asking import error_of
from brokers.gateways.shared.engine_client import NoAnswerError
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.shared.security_protocols import PROTOCOLS
from brokers.wire.errors import ErrorCode, RefusedError, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.events import BrokerHeartbeat, BrokerRegister, BrokerUnregister
from state.features import METADATA_VERSION, UNREGISTERS_CONTROLLERS_SINCE
from state.registration import Feature, Listener

logger = structlog.get_logger()

# Each registration record of a broker names all its log directories.
LOG_DIRS_MAX = 64
_PROTOCOLS = {number: name for name, number in PROTOCOLS.items()}


async def broker_registration(context: Context, request: Request, peer: Peer) -> Values:
    """Register a broker; the engine gives it its epoch.

    A broker that gave up waiting asks again, and gets the epoch that it has by then. If each attempt were a new
    event, no broker could register while the engine takes longer than brokers wait.
    """
    body = request.values
    if body["ClusterId"] != context.identity.cluster_id:
        return {"ErrorCode": ErrorCode.INCONSISTENT_CLUSTER_ID}
    try:
        _check(body)
        _check_levels(context, body)
        epoch = await _registered_epoch(context, body)
        # A level may have been raised just before. Answers wait for what came before them, so the image knows it.
        _check_levels(context, body)
    except RefusedError as refusal:
        # A broker logs only the error's name and tries again; the reason is logged here.
        logger.warning("registration refused", broker=body["BrokerId"], why=str(refusal))
        return {"ErrorCode": refusal.code}
    return {"BrokerEpoch": epoch}


async def _registered_epoch(context: Context, body: Values) -> int:
    held = context.image.brokers.get(body["BrokerId"])
    if held is not None and _is_registered(held, body):
        return held.broker_epoch
    [answer] = await context.engine.ask_once({("register", body["BrokerId"]): _register(body)}, Lane.BROKER)
    if answer.error == "DUPLICATE_BROKER_REGISTRATION":
        # If the former process is dead, the probe shows it before the broker asks again.
        context.probes.begin(body["BrokerId"])
    if answer.error != "NONE" or not isinstance(answer.broker_epoch, int):
        raise RefusedError(code_of(answer.error), answer.message)
    return answer.broker_epoch


def _register(body: Values) -> BrokerRegister:
    return BrokerRegister(
        time_ms=now_ms(),
        broker=body["BrokerId"],
        incarnation=body["IncarnationId"],
        rack=body["Rack"],
        listeners=tuple(
            Listener(one["Name"], one["Host"], one["Port"], _PROTOCOLS[one["SecurityProtocol"]])
            for one in body["Listeners"]
        ),
        log_dirs=tuple(body["LogDirs"]),
        previous_broker_epoch=body["PreviousBrokerEpoch"],
        features=tuple(
            Feature(one["Name"], one["MinSupportedVersion"], one["MaxSupportedVersion"]) for one in body["Features"]
        ),
        behind_gateway=True,
    )


def _check(body: Values) -> None:
    """Refuse a broker that cannot be led. The rules judge whether another process has its id.

    A listener without a name would be a record that Kafka cannot read. Its own controller ends on such a registration.
    """
    if body["IsMigratingZkBroker"]:
        raise RefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, "it is migrating from ZooKeeper")
    if body["BrokerId"] < 0:
        raise RefusedError(ErrorCode.INVALID_REGISTRATION, "its id is negative")
    if any(not all((one["Name"], one["Host"].strip(), one["Port"])) for one in body["Listeners"]):
        raise RefusedError(ErrorCode.INVALID_REGISTRATION, "a listener has no name, no host or no port")
    if any(listener["SecurityProtocol"] not in _PROTOCOLS for listener in body["Listeners"]):
        raise RefusedError(ErrorCode.INVALID_REQUEST, "a listener's security protocol is not one of Kafka's")
    if not body["LogDirs"]:
        raise RefusedError(ErrorCode.INVALID_REGISTRATION, "it names no log directory")
    if any(is_reserved(directory) for directory in body["LogDirs"]):
        raise RefusedError(ErrorCode.INVALID_REGISTRATION, "a log directory has a reserved id")
    if len(set(body["LogDirs"])) < len(body["LogDirs"]):
        raise RefusedError(ErrorCode.INVALID_REGISTRATION, "two log directories have the same id")
    if len(body["LogDirs"]) > LOG_DIRS_MAX:
        message = f"{len(body['LogDirs'])} log.dirs; at most {LOG_DIRS_MAX} are allowed"
        raise RefusedError(ErrorCode.INVALID_REGISTRATION, message)


def _check_levels(context: Context, body: Values) -> None:
    """Refuse a broker that does not support a level in force. The rules do not, because one shard has the levels."""
    supported = {one["Name"]: (one["MinSupportedVersion"], one["MaxSupportedVersion"]) for one in body["Features"]}
    for name, level in levels_of(context).items():
        low, high = supported.get(name, (0, 0))
        if not low <= level <= high:
            raise RefusedError(
                ErrorCode.UNSUPPORTED_VERSION, f"it supports {name} from {low} to {high}, and the log has {level}"
            )


def _is_registered(held: Registration, body: Values) -> bool:
    decided = {
        "BrokerEpoch": held.broker_epoch,
        "Fenced": held.fenced,
        "InControlledShutdown": held.in_controlled_shutdown,
        "CordonedLogDirs": held.cordoned_log_dirs,
    }
    return held == registration_of(body | decided | {"EndPoints": body["Listeners"]})


async def broker_heartbeat(context: Context, request: Request, peer: Peer) -> Values:
    """Pass a heartbeat on, and wait for the engine only if the broker's state is about to change."""
    body = request.values
    known = context.quorum_view.brokers.get(body["BrokerId"])
    if known is None or known.broker_epoch != body["BrokerEpoch"]:
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    context.quorum_view.connected(body["BrokerId"], peer)
    readable, failed = _directories(context, body)
    cordoned = _newly_cordoned(context, body)
    if readable and len(failed) == len(readable):
        # It can read none of its replicas, so it must not lead, whatever it wants.
        body = body | {"WantFence": True}
    caught_up = body["CurrentMetadataOffset"] >= known.registered_by - 1
    may_stop = False
    if body["WantShutDown"]:
        may_stop = await _shut_down(context, body, known, failed)
    elif known.is_serving == body["WantFence"] and (caught_up or body["WantFence"]):
        await _ask(context, _heartbeat(body, want_fence=body["WantFence"], failed=failed, cordoned=cordoned))
    elif failed or cordoned is not UNSET:
        # Without an answer the broker gets an error. It then repeats the failure in its next heartbeats, and shuts down
        # after log.dir.failure.timeout.ms (KIP-858).
        heartbeat = _heartbeat(body, want_fence=not known.is_serving, failed=failed, cordoned=cordoned)
        await context.engine.ask(heartbeat, lane=Lane.BROKER, timeout_ms=context.settings.state_wait_max_ms)
    else:
        # A broker that has not caught up yet stays fenced whatever it wants.
        context.engine.tell(_heartbeat(body, want_fence=not known.is_serving), lane=Lane.BROKER)
    return {"IsCaughtUp": caught_up, "IsFenced": not known.is_serving, "ShouldShutDown": may_stop}


def _directories(context: Context, body: Values) -> tuple[tuple[str, ...], list[str]]:
    """Return a broker's readable log directories, by the metadata log, and the ones that it reports as failed."""
    held = context.image.brokers.get(body["BrokerId"])
    readable: tuple[str, ...] = () if held is None else held.log_dirs
    # A broker repeats all failed directories in every heartbeat. The ones that have failed in the log are left out.
    return readable, [directory for directory in readable if directory in body["OfflineLogDirs"]]


def _newly_cordoned(context: Context, body: Values) -> tuple[str, ...] | UnsetType:
    """Return the directories that a broker says are cordoned, if the metadata log says otherwise.

    A broker names them in every heartbeat, at a metadata version that knows them.
    """
    held, named = context.image.brokers.get(body["BrokerId"]), body["CordonedLogDirs"]
    if named is None or held is None or not knows_cordoning(context.image):
        return UNSET
    cordoned = tuple([directory for directory in held.log_dirs if directory in named])
    return UNSET if cordoned == held.cordoned_log_dirs else cordoned


async def _shut_down(context: Context, body: Values, known: BrokerView, failed: Sequence[str]) -> bool:
    """Hand over the broker's leaderships. Return whether it may stop: all are handed over, and the other brokers know.

    If leaderships remain because there is no other in-sync replica, the broker may stop anyway after some attempts,
    as brokers in ZooKeeper mode do of their own accord. Otherwise it would wait here for minutes. The wait is bounded
    by ``state_wait_max_ms`` and ``followed_wait_max_ms``. If the decision comes later, the next heartbeat's answer has
    it.
    """
    if not known.is_serving:
        return True
    if not known.may_stop:
        await _ask(context, _heartbeat(body, want_fence=False, want_shutdown=True, failed=failed))
    followed = known.may_stop and await context.quorum_view.until_followed(
        context.storage.end_offset, body["BrokerId"], context.settings.followed_wait_max_ms
    )
    if followed:
        # The broker stops now and sends nothing more, so end its session at once.
        context.engine.tell(_heartbeat(body, want_fence=True), lane=Lane.BROKER)
    return followed


def _heartbeat(
    body: Values,
    *,
    want_fence: bool,
    want_shutdown: bool = False,
    failed: Sequence[str] = (),
    cordoned: tuple[str, ...] | UnsetType = UNSET,
) -> BrokerHeartbeat:
    return BrokerHeartbeat(
        time_ms=now_ms(),
        broker=body["BrokerId"],
        broker_epoch=body["BrokerEpoch"],
        want_fence=want_fence,
        want_shutdown=want_shutdown,
        offline_log_dirs=tuple(failed),
        cordoned_log_dirs=cordoned,
    )


async def _ask(context: Context, event: BrokerHeartbeat) -> None:
    # Without an answer the broker asks again with its next heartbeat.
    with contextlib.suppress(NoAnswerError):
        await context.engine.ask(event, lane=Lane.BROKER, timeout_ms=context.settings.state_wait_max_ms)


async def unregister_broker(context: Context, request: Request, peer: Peer) -> Values:
    """Remove the registration of a broker that will not come back."""
    broker = request.values["BrokerId"]
    if broker < 0:
        return {"ErrorCode": ErrorCode.BROKER_ID_NOT_REGISTERED, "ErrorMessage": f"broker {broker} is not registered"}
    event = BrokerUnregister(time_ms=now_ms(), broker=broker)
    [answer] = await context.ask_as_admin(request, [event])
    return error_of(answer)


async def unregister_controller(context: Context, request: Request, peer: Peer) -> Values:
    """Refuse to remove a controller's registration (KIP-1312): gateways write none into the log."""
    if metadata_version_of(context.image) < UNREGISTERS_CONTROLLERS_SINCE:
        message = f"it needs {METADATA_VERSION} {UNREGISTERS_CONTROLLERS_SINCE} (of Kafka 4.4) or later"
        return {"ErrorCode": ErrorCode.UNSUPPORTED_VERSION, "ErrorMessage": message}
    message = f"controller {request.values['ControllerId']} is not registered"
    return {"ErrorCode": ErrorCode.CONTROLLER_ID_NOT_REGISTERED, "ErrorMessage": message}
