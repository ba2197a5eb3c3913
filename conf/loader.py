"""Read the engine's settings: defaults, overridden by a file, by environment variables, and by pairs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from conf import spark_settings
from conf.cross_checks import complaint_about
from conf.layers import Layers, SettingsError, as_text
from conf.settings import PATHS, Settings
from state.policy import NAMES as POLICY_KEYS
from state.policy import Policy

_JAVA_OPTIONS = "driver.java.options"
# What the engine reads of a controller's ``server.properties``.
FROM_KAFKA = POLICY_KEYS | {"super.users"}


class _EngineLayers(Layers):
    """The engine's settings, and Spark's under their own names."""

    def __init__(self) -> None:
        types = {
            f.encode_name: f.type
            for struct in (Policy, Settings)
            for f in msgspec.structs.fields(struct)
            if f.name not in ("policy", "spark")
        }
        super().__init__(types, "conf/reference.toml", PATHS)
        self.keys |= {spark_settings.MASTER}

    def checked(self, key: str, value: object, where: str, *, strict: bool) -> Any:
        if not key.startswith(spark_settings.PREFIX):
            return super().checked(key, value, where, strict=strict)
        if not isinstance(value, str | bool | int | float):
            raise SettingsError(f"{where}: {key}: expected text, a number, true or false, got {value!r}")
        text = as_text(value)
        if complaint := spark_settings.complaint_about(key, text):
            raise SettingsError(f"{where}: {key}: {complaint}")
        return text

    def of_kafka(self, given: Mapping[str, str]) -> dict[str, str]:
        return {key: text for key, text in given.items() if key in FROM_KAFKA}


_LAYERS = _EngineLayers()
KEYS = _LAYERS.keys
from_sets = _LAYERS.from_sets
left_out = _LAYERS.left_out
bus_named = _LAYERS.bus_named


def load(
    path: Path | None = None,
    sets: Iterable[str] = (),
    *,
    bus: str | None = None,
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    cross_check: bool = True,
) -> Settings:
    """Return the settings of the file at ``path``, overridden by ``environment`` and then by ``sets``.

    ``sets`` are ``key=value`` texts. ``bus`` is what ``--bus`` names, and overrides them. ``environment`` has the
    variables of a process (``conf.environment``). Relative paths in the file count from ``directory`` if it is
    given. All others count from the current directory.

    Raises ``SettingsError``. A replay passes ``cross_check=False``: it sends no heartbeats and no ticks, so its
    settings need not fit each other.
    """
    values = _LAYERS.merged(path, sets, bus=bus, environment=environment, directory=directory)
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


def policy_text(values: dict[str, Any]) -> dict[str, str]:
    """Return the policy's settings among ``values`` as text, as events carry them."""
    return {key: as_text(value) for key, value in values.items() if key in POLICY_KEYS}
