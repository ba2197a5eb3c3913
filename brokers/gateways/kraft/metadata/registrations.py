"""Translate decisions about brokers into metadata records."""

from collections.abc import Iterator

from msgspec import UNSET, UnsetType

from brokers.gateways.kraft.metadata.draft import MetadataDraft, registration_after
from brokers.gateways.kraft.metadata.image import Registration, Values
from brokers.gateways.kraft.metadata.uuids import uuid_of
from brokers.gateways.shared.security_protocols import PROTOCOLS
from brokers.wire.metadata.record_frame import Record
from state.decisions import BrokerDecision
from state.features import CORDONING_SINCE, METADATA_VERSION, USUAL_METADATA_VERSION

UNREGISTER_VERSION = 0


def register_version(metadata_version: int) -> int:
    """Return the version of a RegisterBrokerRecord (``MetadataVersion.registerBrokerRecordVersion``)."""
    return 3 if metadata_version < CORDONING_SINCE else 4


def change_version(metadata_version: int) -> int:
    """Return the version of a BrokerRegistrationChangeRecord (``ReplicationControlManager``)."""
    return 2 if metadata_version < CORDONING_SINCE else 3


def broker_records(draft: MetadataDraft, decision: BrokerDecision) -> Iterator[Record]:
    """Yield the change of a broker's registration, or all of it if a change record cannot express that.

    In Kafka only a new registration ends a controlled shutdown. Under our rules, a broker that is fenced while it shuts
    down may also come back. Then its registration is written again with the same epoch.
    """
    held = draft.brokers.get(decision.broker)
    if decision.state == "unregistered":
        if held is not None:
            values = {"BrokerId": held.broker, "BrokerEpoch": held.broker_epoch}
            yield Record("UnregisterBrokerRecord", UNREGISTER_VERSION, values)
        return
    wanted = _decided(decision, held)
    if held == wanted:
        return
    change = _change(held, wanted) if held is not None else {}
    if held is not None and registration_after(held, change) == wanted:
        values = {"BrokerId": wanted.broker, "BrokerEpoch": wanted.broker_epoch, **change}
        yield Record("BrokerRegistrationChangeRecord", change_version(_level_of(draft)), values)
    else:
        yield registered(wanted, _level_of(draft))


def _level_of(draft: MetadataDraft) -> int:
    return draft.features.get(METADATA_VERSION, USUAL_METADATA_VERSION)


def registered(broker: Registration, metadata_version: int) -> Record:
    """Return the record of a whole registration."""
    values = {
        "BrokerId": broker.broker,
        "IncarnationId": broker.incarnation,
        "BrokerEpoch": broker.broker_epoch,
        "EndPoints": [
            {"Name": name, "Host": host, "Port": port, "SecurityProtocol": protocol}
            for name, host, port, protocol in broker.endpoints
        ],
        "Features": [
            {"Name": name, "MinSupportedVersion": low, "MaxSupportedVersion": high}
            for name, low, high in broker.features
        ],
        "Rack": broker.rack,
        "Fenced": broker.fenced,
        "InControlledShutdown": broker.in_controlled_shutdown,
        "LogDirs": list(broker.log_dirs),
        "CordonedLogDirs": list(broker.cordoned_log_dirs) or None,
    }
    return Record("RegisterBrokerRecord", register_version(metadata_version), values)


def _decided(decision: BrokerDecision, held: Registration | None) -> Registration:
    """Return the registration as brokers must see it.

    ``shutdown_allowed`` is addressed to the broker alone; the others still see it in its controlled shutdown, or
    fenced as before. Endpoints of a protocol that Kafka does not have are left out.
    """
    same = held is not None and held.broker_epoch == decision.broker_epoch
    fenced = decision.state == "fenced"
    if decision.state == "shutdown_allowed":
        fenced = held is not None and held.fenced
    leaving = decision.state in ("controlled_shutdown", "shutdown_allowed") and not fenced
    return Registration(
        decision.broker,
        decision.broker_epoch,
        uuid_of(decision.incarnation),
        tuple([(e.name, e.host, e.port, PROTOCOLS[e.protocol]) for e in decision.listeners if e.protocol in PROTOCOLS]),
        ()
        if decision.features is UNSET
        else tuple([(f.name, f.min_version, f.max_version) for f in decision.features]),
        decision.rack,
        _uuids_of(decision.log_dirs),
        fenced,
        leaving or (fenced and same and held is not None and held.in_controlled_shutdown),
        _uuids_of(decision.cordoned_log_dirs),
    )


def _uuids_of(directories: tuple[str, ...] | UnsetType) -> tuple[str, ...]:
    return () if directories is UNSET else tuple([uuid_of(directory) for directory in directories])


def _change(held: Registration, wanted: Registration) -> Values:
    """Return the fields that differ and that a change record has."""
    change: dict[str, object] = {}
    if wanted.fenced != held.fenced:
        change["Fenced"] = 1 if wanted.fenced else -1
    if wanted.in_controlled_shutdown and not held.in_controlled_shutdown:
        change["InControlledShutdown"] = 1
    if wanted.log_dirs != held.log_dirs:
        change["LogDirs"] = list(wanted.log_dirs)
    if wanted.cordoned_log_dirs != held.cordoned_log_dirs:
        change["CordonedLogDirs"] = list(wanted.cordoned_log_dirs)
    return change
