"""The state as nested names, and the place that a path leads to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from cli.committed import committed
from cli.errors import Refused, WrongUse
from cli.parameters import file_option
from conf.near_names import suggestion
from conf.settings import Settings
from state.secrets import shown_settings

Node = dict[str, Any]

path_argument = click.argument("path", default="/", metavar="[PATH]")
state_option = file_option(
    "--state",
    "file",
    help="Look into this file, which 'isrflow replay --state' wrote.",
)


def tree_of(settings: Settings, file: Path | None, at: str | None) -> Node:
    """Return the state on the bus, now or ``at`` a moment, or in ``file``. Raises ``Unreachable`` or ``WrongUse``."""
    if file is not None:
        if at is not None:
            raise WrongUse("--state names one state, so it has no --at.")
        return _read(file)
    found = committed(settings, at)
    cluster = found.cluster
    brokers = {name: shown_settings("broker", config) for name, config in cluster.broker_config.items()}
    dynamic = {
        "cluster": shown_settings("cluster", cluster.config),
        "brokers": brokers,
        "claim": cluster.settings,
    }
    return _nested(found.view()) | {"settings": dynamic, "quorum": msgspec.to_builtins(cluster.quorum)}


def _read(file: Path) -> Node:
    """Read the tree of a written state. Its names may be anything, and a partition's topic may be missing."""
    try:
        return _nested(msgspec.json.decode(file.read_bytes(), type=dict[str, Any]))
    except OSError as error:
        raise WrongUse(f"cannot read {file}: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, RecursionError) as error:
        raise WrongUse(f"{file} is not a state: expected what 'isrflow replay --state' writes") from error


def _nested(view: Node) -> Node:
    lists = ("brokers", "topics", "partitions")
    topics = {topic["topic"]: {**topic, "partitions": {}} for topic in view["topics"]}
    for partition in view["partitions"]:
        topics[partition["topic"]]["partitions"][str(partition["partition"])] = partition
    return {
        "controller": {key: value for key, value in view.items() if key not in lists},
        "brokers": {str(broker["broker"]): broker for broker in view["brokers"]},
        "topics": topics,
    }


def found_at(tree: Node, path: str) -> Any:
    """Return what ``path`` leads to. Raises ``Refused``, which suggests the nearest name."""
    node: Any = tree
    gone: list[str] = []
    for name in filter(None, path.split("/")):
        if not isinstance(node, dict) or name not in node:
            where = "/" + "/".join(gone)
            raise Refused(f"there is no {name!r} in {where}{_hint(node, name)}")
        node = node[name]
        gone.append(name)
    return node


def _hint(node: Any, name: str) -> str:
    if not isinstance(node, dict):
        return ", which is a value."
    hint = suggestion(name, node, "'isrflow state tree' shows what is there.")
    return f"; {hint}"


def drawn(node: Any, name: str, depth: int, say: Callable[[str], object], indent: int = 0) -> None:
    """Draw a tree with indented lines. Below ``depth``, nodes are only counted."""
    pad = "  " * indent
    if not isinstance(node, dict):
        say(f"{pad}{name} = {msgspec.json.encode(node).decode()}")
    elif indent > depth:
        say(f"{pad}{name}/ ({len(node)})")
    else:
        say(f"{pad}{name}/")
        for inner, value in node.items():
            drawn(value, str(inner), depth, say, indent + 1)
