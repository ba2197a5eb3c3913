"""Start brokers in a story: register them, and let them heartbeat."""

from typing import Any

from tests.scenarios.script import ALIVE, Script
from tests.scenarios.story import Command


def register_broker(script: Script, broker: int, rack: str | None = None, same: bool = False, **fields: Any) -> None:
    """Register a broker, as another incarnation than before unless it is the ``same``."""
    lives = len(script.epochs.get(broker, ())) + (not same)
    if rack is not None:
        fields["rack"] = rack
    if broker in script.behind_gateway:
        fields["behind_gateway"] = True
    script.register(broker, incarnation=f"{broker}-{lives}", **fields)


def registration(command: Command) -> dict[str, Any]:
    """Read what a command tells of a broker."""
    told = command.options
    fields: dict[str, Any] = {"rack": told.get("rack"), "same": told.get("incarnation") == "same"}
    if "listener" in told:
        host, port = told["listener"].split(":")
        fields["listeners"] = [{"name": "PLAINTEXT", "host": host, "port": int(port)}]
    if "log-dir" in told:
        fields["log_dirs"] = [told["log-dir"]]
    if "behind-gateway" in command.arguments:
        fields["behind_gateway"] = True
    return fields


def beats(script: Script, broker: int) -> None:
    """Send a first heartbeat, and go on with it."""
    script.beat(broker, ALIVE)
    script.beating[broker] = ALIVE
