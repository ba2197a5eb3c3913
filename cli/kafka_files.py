"""The JSON files of Kafka's own tools: plans of reassignments, topics to move, and lists of elections."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from cli.errors import WrongUse
from conf.counted import counted

_Number = Annotated[int, Meta(ge=0, le=2**31 - 1)]
BYTES_MAX = 256 * 1024 * 1024
# The directory in a plan when the broker may choose.
ANY_LOG_DIR = "any"
_T = TypeVar("_T")


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One partition of a plan, with the replicas that it is to have."""

    topic: str
    partition: _Number
    replicas: Annotated[tuple[_Number, ...], Meta(min_length=1)]
    log_dirs: tuple[str, ...] | None = None


class _Plan(msgspec.Struct, frozen=True):
    partitions: tuple[Move, ...]
    version: int = 1


class _Topic(msgspec.Struct, frozen=True):
    topic: str


class _Topics(msgspec.Struct, frozen=True):
    topics: tuple[_Topic, ...]
    version: int = 1


class _Place(msgspec.Struct, frozen=True):
    topic: str
    partition: _Number


class _Election(msgspec.Struct, frozen=True):
    partitions: tuple[_Place, ...]


def read_plan(path: Path) -> tuple[Move, ...]:
    """Read a plan of reassignments. Raises ``WrongUse`` that names what is wrong."""
    plan = _read(path, _Plan)
    _check_version(path, plan.version)
    _check_distinct(path, [f"{move.topic}-{move.partition}" for move in plan.partitions])
    for move in plan.partitions:
        _check_log_dirs(path, move)
    return plan.partitions


def _check_log_dirs(path: Path, move: Move) -> None:
    """Refuse named log directories. isrflow speaks to the bus alone, and only a broker can choose its directory."""
    if move.log_dirs is None:
        return
    name = f"{move.topic}-{move.partition}"
    if len(move.log_dirs) != len(move.replicas):
        replicas = counted(len(move.replicas), "replica")
        raise WrongUse(f"{path}: {name} has {replicas} and {len(move.log_dirs)} log_dirs")
    named = [where for where in move.log_dirs if where != ANY_LOG_DIR]
    if named:
        raise WrongUse(
            f"{path}: {name} names the log directory {named[0]}, and only the broker can move a replica into it. "
            "Give the file to Kafka's own tool: kafka-reassign-partitions --bootstrap-server BROKERS --execute "
            f'--reassignment-json-file {path}; or write "{ANY_LOG_DIR}", and the broker chooses'
        )


def read_topics(path: Path) -> list[str]:
    """Read a list of topics to move. Raises ``WrongUse``."""
    found = _read(path, _Topics)
    _check_version(path, found.version)
    names = [topic.topic for topic in found.topics]
    _check_distinct(path, names)
    return names


def read_election(path: Path) -> list[dict[str, object]]:
    """Read a list of partitions for an election. Raises ``WrongUse``."""
    places = _read(path, _Election).partitions
    _check_distinct(path, [f"{place.topic}-{place.partition}" for place in places])
    return [{"topic": place.topic, "partition": place.partition} for place in places]


def plan_of(replicas: Mapping[tuple[str, int], Sequence[int]]) -> dict[str, Any]:
    """Make a plan as Kafka's tool writes it."""
    return {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": number, "replicas": list(brokers), "log_dirs": [ANY_LOG_DIR] * len(brokers)}
            for (topic, number), brokers in sorted(replicas.items())
        ],
    }


def _read(path: Path, kind: type[_T]) -> _T:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise WrongUse(f"{path} has more than {BYTES_MAX} bytes")
        found: _T = msgspec.json.decode(path.read_bytes(), type=kind)
        return found
    except OSError as error:
        raise WrongUse(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WrongUse(f"{path}: {error}") from error


def _check_version(path: Path, version: int) -> None:
    if version != 1:
        raise WrongUse(f"{path}: version is {version}: expected 1")


def _check_distinct(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise WrongUse(f"{path} names nothing")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise WrongUse(f"{path} names {', '.join(twice[:3])} twice")
