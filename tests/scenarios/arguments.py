"""Read the arguments of a command."""

from typing import Any

from tests.scenarios.story import Command

UNITS_MS = {"ms": 1, "s": 1_000}


def request_id_in(command: Command) -> dict[str, Any]:
    """Return the request id as a field, if the command has one."""
    return {"request_id": command.options["request-id"]} if "request-id" in command.options else {}


def ids(text: str) -> list[int]:
    """Read a list of brokers; ``none`` is an empty one."""
    return [] if text == "none" else [int(one) for one in text.split(",")]


def partition_of(text: str) -> tuple[str, int]:
    """Read the name of a partition: topic and number."""
    name, _, number = text.rpartition("-")
    return name, int(number)


def epoch_in(text: str | None, current: int) -> int:
    """Return the current epoch; for ``stale`` the one before, for ``newer`` the next; otherwise the number given."""
    steps = {None: 0, "stale": -1, "newer": 1}
    return current + steps[text] if text in steps else int(text or 0)


def settings_in(options: dict[str, str]) -> dict[str, str]:
    """Select the settings among the arguments: Kafka's names have a dot."""
    return {key: value for key, value in options.items() if "." in key}


def duration_ms(text: str) -> int:
    """Read ``9s`` or ``500ms``."""
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * UNITS_MS[unit]
