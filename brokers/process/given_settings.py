"""The settings of a broker's or gateway's process, as its command line gives them: ``--set KEY=VALUE``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import click
import msgspec
from msgspec import Meta

from conf.expected import expected
from conf.near_names import addition
from conf.security.exposure import MetricsSettings, Protection, protection_of
from isrflow.bus_url import check_url
from isrflow.errors import BusError
from isrflow.masking import masked_value
from state import policy

Millis = Annotated[int, Meta(ge=1, le=86_400_000)]
Bytes = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
NO_PORT = -1
# 0 takes any free port, NO_PORT none.
MetricsPort = Annotated[int, Meta(ge=NO_PORT, le=65_535)]

S = TypeVar("S", bound=msgspec.Struct)


def converted(given: Mapping[str, Any], kind: type[S]) -> S:
    """Make settings from their outward names; numbers may be text.

    Names that only the engine reads are ignored, so one list of settings can be given to both.
    Raises ``msgspec.ValidationError``, which names the setting, for an unknown one or a value out of range.
    """
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    ours = {name: value for name, value in given.items() if name in types or name not in policy.NAMES}
    for name, value in ours.items():
        if name not in types:
            raise msgspec.ValidationError(f"unknown setting {name!r}{addition(name, types)}")
        try:
            msgspec.convert(value, types[name], strict=False)
        except msgspec.ValidationError as error:
            got = masked_value(str(value))
            raise msgspec.ValidationError(f"{name}: {expected(types[name], error)}, got {got!r}") from error
    return msgspec.convert(ours, kind, strict=False)


def parsed(given: Sequence[str], settings_of: Callable[[dict[str, Any]], S]) -> S:
    """Make settings from the values of ``--set``. Raises ``click.BadParameter``."""
    pairs = dict(text.split("=", 1) for text in given if "=" in text)
    if len(pairs) != len(given):
        raise click.BadParameter("expected key=value, each key once", param_hint="--set")
    try:
        return settings_of(pairs)
    except msgspec.ValidationError as error:
        raise click.BadParameter(str(error), param_hint="--set") from error


def bus_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --bus to a command. A text that names no bus is a usage error; no wait would help."""

    def checked(context: click.Context, parameter: click.Parameter, bus: str) -> str:
        try:
            check_url(bus)
        except BusError as error:
            raise click.BadParameter(str(error)) from error
        return bus

    option = click.option("--bus", required=True, metavar="PATH|URL", callback=checked, help="The bus.")
    return option(function)


def metrics_protection(settings: MetricsSettings) -> Protection:
    """Return how the address of the metrics is protected. Raises ``click.BadParameter`` if that is not enough."""
    try:
        return protection_of(settings)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from error
