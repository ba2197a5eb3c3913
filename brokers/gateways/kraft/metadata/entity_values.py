"""Metadata entities as metadata records have them, in both directions."""

import base64
from collections.abc import Mapping

import msgspec

from brokers.gateways.kraft.metadata.image import CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, Values
from brokers.wire.metadata.record_frame import Record
from state.entity import TOKEN, TOKEN_EXPIRY, TOKEN_ID, EntityType

QUOTA_VERSION = 0
SCRAM_VERSION = 0
REMOVE_SCRAM_VERSION = 0
TOKEN_VERSION = 0
REMOVE_TOKEN_VERSION = 0
# The entity types whose values are settings of a resource: the resource's type, and the part that names it.
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
# The fields of a delegation token by its values, first the texts and then the times.
_TOKEN_TEXTS = {"owner": "Owner", "requester": "Requester"}
_TOKEN_TIMES = {
    "issue_timestamp_ms": "IssueTimestamp",
    "max_timestamp_ms": "MaxTimestamp",
    TOKEN_EXPIRY: "ExpirationTimestamp",
}
_RENEWERS = "renewers"
_renewers = msgspec.json.Decoder(list[str])

Names = Mapping[str, str | None]
# The type of an entity, its names, and its changed values; a null value is removed.
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


def token_record(names: Names, values: Mapping[str, str]) -> Record:
    """Return the record of a delegation token; without values, of its removal."""
    of = {"TokenId": names[TOKEN_ID]}
    if not values:
        return Record("RemoveDelegationTokenRecord", REMOVE_TOKEN_VERSION, of)
    texts = {field: values[key] for key, field in _TOKEN_TEXTS.items()}
    times = {field: int(values[key]) for key, field in _TOKEN_TIMES.items()}
    return Record("DelegationTokenRecord", TOKEN_VERSION, of | texts | times | {"Renewers": renewers_of(values)})


def renewers_of(values: Mapping[str, str]) -> list[str]:
    """Return the principals, beside its owner, that may renew a delegation token of these values."""
    return _renewers.decode(values[_RENEWERS])


def token_of(values: Values) -> Change:
    """Read a record of a delegation token or of its removal."""
    names = {TOKEN_ID: values["TokenId"]}
    if "Owner" not in values:
        return TOKEN, names, dict.fromkeys((*_TOKEN_TEXTS, *_TOKEN_TIMES, _RENEWERS))
    texts = {key: values[field] for key, field in _TOKEN_TEXTS.items()}
    times = {key: str(values[field]) for key, field in _TOKEN_TIMES.items()}
    return TOKEN, names, texts | times | {_RENEWERS: msgspec.json.encode(list(values["Renewers"])).decode()}
