"""Read settings: defaults, overridden by a TOML file, by environment variables, and by ``key=value`` pairs."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from conf import spark_settings
from conf.cross_checks import complaint_about
from conf.environment import UnknownVariableError, given_in
from conf.expected import expected
from conf.near_names import suggestion
from conf.place_uri import is_uri
from conf.settings import PATHS, Settings
from isrflow.contract import SQLITE
from isrflow.masking import masked_value
from state.policy import NAMES as POLICY_KEYS
from state.policy import Policy

_TYPES: dict[str, Any] = {
    f.encode_name: f.type
    for struct in (Policy, Settings)
    for f in msgspec.structs.fields(struct)
    if f.name not in ("policy", "spark")
}
KEYS = frozenset({*_TYPES, spark_settings.MASTER})
_JAVA_OPTIONS = "driver.java.options"


class SettingsError(Exception):
    """A setting is unknown or has a wrong value. The message names the setting and the expected value."""


def load(
    path: Path | None = None,
    sets: Iterable[str] = (),
    *,
    bus: str | None = None,
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    cross_check: bool = True,
) -> Settings:
    """Return the settings of the TOML file at ``path``, overridden by ``environment`` and then by ``sets``.

    ``sets`` are ``key=value`` texts. ``bus`` is what ``--bus`` names, and overrides them. ``environment`` has the
    variables of a process (``conf.environment``). Relative paths in the TOML file count from ``directory`` if it is
    given. All others count from the current directory.

    Raises ``SettingsError``. A replay passes ``cross_check=False``: it sends no heartbeats and no ticks, so its
    settings need not fit each other.
    """
    values = _from_file(path) if path else {}
    if directory:
        named = {key: values[key] for key in PATHS if values.get(key)}
        values |= {key: str(Path(directory) / place) for key, place in named.items() if not is_uri(place)}
    values |= _from_environment(environment or {})
    values |= from_sets(sets)
    if bus is not None:
        values["bus"] = bus_named(bus)
    policy = {key: value for key, value in values.items() if key in POLICY_KEYS}
    spark = {key: value for key, value in values.items() if key.startswith(spark_settings.PREFIX)}
    engine = {key: value for key, value in values.items() if key not in POLICY_KEYS and key not in spark}
    # An empty spark.master counts as not given, as with the engine's own settings.
    given = {key: value for key, value in spark.items() if value or key != spark_settings.MASTER}
    settings = msgspec.convert(engine | {"policy": policy, "spark": given}, Settings)
    if cross_check and (complaint := complaint_about(settings, values)):
        raise SettingsError(complaint)
    return settings


def differing(settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from their defaults, by the names that users know, without Spark's secrets."""
    defaults, values = _flat_values(Settings()), _flat_values(settings)
    found = {key: value for key, value in sorted(values.items()) if value != defaults[key]}
    if "spark" in found:
        found["spark"] = {key: spark_settings.shown(key, value) for key, value in settings.spark.items()}
    if _JAVA_OPTIONS in found:
        found[_JAVA_OPTIONS] = spark_settings.shown(_JAVA_OPTIONS, settings.driver_java_options)
    return found


def _flat_values(settings: Settings) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(settings)
    policy: dict[str, Any] = values.pop("policy")
    return values | policy


def from_sets(sets: Iterable[str]) -> dict[str, Any]:
    """Parse ``key=value`` texts. A later one wins."""
    values: dict[str, Any] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f"--set {masked_value(text)}: expected key=value")
        where = f"--set {key}={masked_value(value)}"
        values[key.strip()] = _checked(key.strip(), value.strip(), where, strict=False)
    return values


def policy_text(values: dict[str, Any]) -> dict[str, str]:
    """Return the policy's settings among ``values`` as text, as events carry them."""
    return {key: as_text(value) for key, value in values.items() if key in POLICY_KEYS}


def as_text(value: object) -> str:
    """Format a value as in Kafka's properties."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def bus_named(bus: str) -> str:
    """Return the URL of the bus that --bus names, which may be a bare path. Raises ``SettingsError``."""
    if not bus:
        # A script whose variable is not set would change another cluster.
        raise SettingsError("--bus is empty: name a bus, or leave the option out.")
    return str(_checked("bus", _bus_url(bus), f"--bus {masked_value(bus)}", strict=False))


def _bus_url(text: str) -> str:
    """Return the URL of a bus that --bus or ISRFLOW_BUS names, which may be a bare path."""
    return text if ":" in text else SQLITE + text


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        given = given_in(environment, KEYS)
    except UnknownVariableError as error:
        raise SettingsError(str(error)) from error
    return {
        key: _checked(key, _bus_url(text) if key == "bus" else text, variable, strict=False)
        for key, (variable, text) in given.items()
    }


def _from_file(path: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    return {key: _checked(key, value, str(path), strict=True) for key, value in _flat(tables, "")}


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Join nested tables to Kafka's dotted names, because TOML reads a dotted key as nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _checked(key: str, value: object, where: str, *, strict: bool) -> Any:
    if key.startswith(spark_settings.PREFIX):
        return _checked_for_spark(key, value, where)
    if key not in _TYPES:
        raise SettingsError(f"{where}: unknown setting {key!r}{_nearest(key)}")
    try:
        return msgspec.convert(value, _TYPES[key], strict=strict)
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"{where}: {key}: {expected(_TYPES[key], error)}, got {masked_value(as_text(value))!r}"
        ) from error


def _checked_for_spark(key: str, value: object, where: str) -> str:
    if not isinstance(value, str | bool | int | float):
        raise SettingsError(f"{where}: {key}: expected text, a number, true or false, got {value!r}")
    text = as_text(value)
    if complaint := spark_settings.complaint_about(key, text):
        raise SettingsError(f"{where}: {key}: {complaint}")
    return text


def _nearest(key: str) -> str:
    return f"; {suggestion(key, sorted(KEYS), 'conf/reference.toml lists all settings')}"
