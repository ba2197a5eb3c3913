"""Print the contract as JSON Schema."""

from typing import Any, Literal

import click
import msgspec

from state.decisions import AnyDecision
from state.events import AnyEvent

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: dict[str, Any] = {"events": AnyEvent, "decisions": AnyDecision}


def schema(of: Literal["events", "decisions"]) -> dict[str, Any]:
    """Return the JSON Schema of one event, or of one decision."""
    found: dict[str, Any] = _portable(msgspec.json.schema(_TYPES[of]))
    return {"$schema": DIALECT, "title": f"One of isrflow's {of}, contract version 1"} | found


def _portable(part: Any) -> Any:
    """Write patterns as JavaScript knows them, and texts in one line."""
    if isinstance(part, list):
        return [_portable(one) for one in part]
    if not isinstance(part, dict):
        return part
    changed = {key: _portable(value) for key, value in part.items()}
    if isinstance(changed.get("pattern"), str):
        changed["pattern"] = changed["pattern"].replace(r"\Z", "$")
    if isinstance(changed.get("description"), str):
        changed["description"] = " ".join(changed["description"].split())
    return changed


@click.command("schema")
@click.argument("of", type=click.Choice(list(_TYPES)), metavar="events|decisions")
def command(of: Literal["events", "decisions"]) -> None:
    """Print the JSON Schema of events or of decisions.

    Fields may be added later, so both schemas allow fields that they do not name.

    \b
    Examples:
      isrflow schema events > events.schema.json
      isrflow schema decisions | python -m json.tool --no-indent
    """
    click.echo(msgspec.json.format(msgspec.json.encode(schema(of)), indent=2))
