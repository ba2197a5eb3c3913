"""The systemd units of ``deploy/``, and what systemd does by them when an engine ends."""

from collections import defaultdict
from pathlib import Path

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"


def service(path: Path) -> dict[str, list[str]]:
    """Return the settings of a unit, each with all its values."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[name].append(value)
    return found


def by_name(name: str) -> dict[str, list[str]]:
    return service(UNITS / f"{name}.service")


def starts_again(name: str, exit_code: int) -> bool:
    """Return whether systemd starts a unit again when its engine has ended with ``exit_code``."""
    unit = by_name(name)
    assert unit["Restart"] == ["always"]
    return str(exit_code) not in " ".join(unit["RestartPreventExitStatus"]).split()
