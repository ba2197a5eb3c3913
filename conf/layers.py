"""The settings of one kind of process, from a file, the environment and ``key=value`` pairs; the later wins."""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from conf.environment import UnknownVariableError, given_in
from conf.expected import expected
from conf.near_names import suggestion
from conf.place_uri import is_uri
from conf.properties_file import SUFFIX, pairs_in
from conf.settings_error import SettingsError as SettingsError
from conf.spark_settings import is_secret
from isrflow.contract import SQLITE
from isrflow.masking import masked_value


class Layers:
    """The settings that a kind of process has, by name with their types, and the document that lists them.

    ``paths`` are the settings that name a file or directory.
    """

    def __init__(self, types: Mapping[str, Any], reference: str, paths: Collection[str] = ()) -> None:
        self.types = types
        self.reference = reference
        self.keys = frozenset(types)
        self._paths = paths

    def merged(
        self,
        path: Path | None = None,
        sets: Iterable[str] = (),
        *,
        bus: str | None = None,
        environment: Mapping[str, str] | None = None,
        directory: str | None = None,
    ) -> dict[str, Any]:
        """Return the values of the file at ``path``, overridden by ``environment``, then ``sets``, then ``bus``.

        Relative paths in the file count from ``directory`` if it is given. Raises ``SettingsError``.
        """
        values = self._from_file(path) if path else {}
        if directory:
            named = {key: values[key] for key in self._paths if values.get(key)}
            values |= {key: str(Path(directory) / place) for key, place in named.items() if not is_uri(place)}
        values |= self._from_environment(environment or {})
        values |= self.from_sets(sets)
        return values if bus is None else values | {"bus": self.bus_named(bus)}

    def from_sets(self, sets: Iterable[str]) -> dict[str, Any]:
        """Parse ``key=value`` texts. A later one wins. Raises ``SettingsError``."""
        values: dict[str, Any] = {}
        for text in sets:
            key, equals, value = text.partition("=")
            if not equals:
                raise SettingsError(f"--set {masked_value(text)}: expected key=value")
            where = f"--set {key}={'***' if is_secret(key) else masked_value(value)}"
            values[key.strip()] = self.checked(key.strip(), value.strip(), where, strict=False)
        return values

    def bus_named(self, bus: str) -> str:
        """Return the URL of the bus that --bus names, which may be a bare path. Raises ``SettingsError``."""
        if not bus:
            # A script whose variable is not set would change another cluster.
            raise SettingsError("--bus is empty: name a bus, or leave the option out.")
        return str(self.checked("bus", _bus_url(bus), f"--bus {masked_value(bus)}", strict=False))

    def _from_environment(self, environment: Mapping[str, str]) -> dict[str, Any]:
        try:
            given = given_in(environment, self.keys, self.reference)
        except UnknownVariableError as error:
            raise SettingsError(str(error)) from error
        return {
            key: self.checked(key, _bus_url(text) if key == "bus" else text, variable, strict=False)
            for key, (variable, text) in given.items()
        }

    def _from_file(self, path: Path) -> dict[str, Any]:
        given = flat_file(path)
        is_kafkas = is_properties(path)
        taken = self.of_kafka(given) if is_kafkas else given
        return {key: self.checked(key, value, str(path), strict=not is_kafkas) for key, value in taken.items()}

    def of_kafka(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that this kind of process reads of Kafka's ``server.properties``."""
        return {key: text for key, text in given.items() if key in self.keys}

    def left_out(self, path: Path) -> list[str]:
        """Return the names in a ``server.properties`` that this kind of process does not read."""
        given = pairs_in(path)
        taken = self.of_kafka(given)
        return [key for key in sorted(given) if self.of_kafka({k: v for k, v in given.items() if k != key}) == taken]

    def checked(self, key: str, value: object, where: str, *, strict: bool) -> Any:
        """Return the value of one setting, which came from ``where``. Raises ``SettingsError``.

        If it is not ``strict``, a text may stand for a number or a switch.
        """
        if key not in self.types:
            told = suggestion(key, sorted(self.keys), f"{self.reference} lists all settings")
            raise SettingsError(f"{where}: unknown setting {key!r}; {told}")
        try:
            return msgspec.convert(value, self.types[key], strict=strict)
        except msgspec.ValidationError as error:
            wanted = expected(self.types[key], error)
            raise SettingsError(f"{where}: {key}: {wanted}, got {masked_value(as_text(value))!r}") from error


def as_text(value: object) -> str:
    """Format a value as in Kafka's properties."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_properties(path: Path) -> bool:
    """Return whether a settings file is one of Kafka's, and not TOML."""
    return path.suffix == SUFFIX


def flat_file(path: Path) -> dict[str, Any]:
    """Read a settings file, and return its values by their dotted names. Raises ``SettingsError``."""
    if is_properties(path):
        return dict(pairs_in(path))
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    return dict(_flat(tables, ""))


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Join nested tables to Kafka's dotted names, because TOML reads a dotted key as nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _bus_url(text: str) -> str:
    """Return the URL of a bus that --bus or ISRFLOW_BUS names, which may be a bare path."""
    return text if ":" in text else SQLITE + text
