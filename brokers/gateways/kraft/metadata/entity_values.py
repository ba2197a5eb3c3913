"""Metadata entities as metadata records have them, in both directions."""

import base64
from collections.abc import Mapping

from brokers.gateways.kraft.metadata.image import CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, Values
from brokers.gateways.kraft.record_frame import Record
from state.entity import EntityType

QUOTA_VERSION = 0
SCRAM_VERSION = 0
REMOVE_SCRAM_VERSION = 0
# The types whose values are settings of a resource: its type, and what names it.
ENTITY_RESOURCES: dict[EntityType, tuple[int, str]] = {
    "client_metrics": (CLIENT_METRICS_RESOURCE, "client-metrics"),
    "group": (GROUP_RESOURCE, "group"),
}
# Kafka's numbers of mechanisms (``ScramMechanism``).
MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
MECHANISM_NAMES = {number: name for name, number in MECHANISMS.items()}
# The fields of a credential by its values; all but the last are bytes.
_SCRAM_FIELDS = {"salt": "Salt", "server_key": "ServerKey", "stored_key": "StoredKey", "iterations": "Iterations"}
_ITERATIONS = "iterations"

Names = Mapping[str, str | None]
# The type of an entity, what names it, and its changed values; a null value is removed.
Change = tuple[EntityType, Names, Mapping[str, str | None]]


def quota_record(names: Names, key: str, value: str | None) -> Record:
    """Return the record of one quota; None removes it."""
    of = [{"EntityType": part, "EntityName": name} for part, name in sorted(names.items())]
    values = {"Entity": of, "Key": key, "Value": float(value or 0), "Remove": value is None}
    return Record("ClientQuotaRecord", QUOTA_VERSION, values)


def quota_of(values: Values) -> Change:
    """Read a ClientQuotaRecord."""
    names = {one["EntityType"]: one["EntityName"] for one in values["Entity"]}
    return "client_quota", names, {values["Key"]: None if values["Remove"] else repr(float(values["Value"]))}


def scram_record(names: Names, values: Mapping[str, str]) -> Record:
    """Return the record of a SCRAM credential; without values, of its removal."""
    of = {"Name": names["user"], "Mechanism": MECHANISMS[str(names["mechanism"])]}
    if not values:
        return Record("RemoveUserScramCredentialRecord", REMOVE_SCRAM_VERSION, of)
    fields = {
        field: int(values[key]) if key == _ITERATIONS else base64.b64decode(values[key])
        for key, field in _SCRAM_FIELDS.items()
    }
    return Record("UserScramCredentialRecord", SCRAM_VERSION, of | fields)


def scram_of(values: Values) -> Change:
    """Read a record of a SCRAM credential or of its removal. Raises ``ValueError`` for an unknown mechanism."""
    if values["Mechanism"] not in MECHANISM_NAMES:
        raise ValueError(f"there is no SCRAM mechanism {values['Mechanism']}")
    names = {"mechanism": MECHANISM_NAMES[values["Mechanism"]], "user": values["Name"]}
    if _SCRAM_FIELDS[_ITERATIONS] not in values:
        return "scram_credential", names, dict.fromkeys(_SCRAM_FIELDS)
    kept = {
        key: str(values[field]) if key == _ITERATIONS else base64.b64encode(values[field]).decode()
        for key, field in _SCRAM_FIELDS.items()
    }
    return "scram_credential", names, kept
