"""Start brokers in a story: register them, and let them heartbeat."""

from typing import Any

from tests.scenarios.script import ALIVE, Script
from tests.scenarios.story import Command


def register_broker(
    script: Script,
    broker: int,
    rack: str | None = None,
    same: bool = False,
    is_clean: bool = False,
    zxid: str = "",
    **fields: Any,
) -> None:
    """Register a broker, as another incarnation than before unless it is the ``same``."""
    if is_clean:
        fields["previous_broker_epoch"] = script.broker_epoch(broker)
    lives = len(script.epochs.get(broker, ())) + (not same)
    if rack is not None:
        fields["rack"] = rack
    if broker in script.kraft_brokers:
        fields["behind_gateway"] = True
    script.register(broker, incarnation=zxid or f"{broker}-{lives}", **fields)


def registration(command: Command) -> dict[str, Any]:
    """Read the fields of a registration from a command's arguments."""
    given = command.options
    fields: dict[str, Any] = {"rack": given.get("rack"), "same": given.get("incarnation") == "same"}
    if "listener" in given:
        host, port = given["listener"].split(":")
        fields["listeners"] = [{"name": "PLAINTEXT", "host": host, "port": int(port)}]
    if "log-dir" in given:
        fields["log_dirs"] = given["log-dir"].split(",")
    if "zxid" in given:
        fields["zxid"] = given["zxid"]
    if "behind-gateway" in command.arguments:
        fields["behind_gateway"] = True
    if "clean" in command.arguments:
        fields["is_clean"] = True
    return fields


def beats(script: Script, broker: int) -> None:
    """Send a first heartbeat, and continue with it."""
    script.beat(broker, ALIVE)
    script.beating[broker] = ALIVE
