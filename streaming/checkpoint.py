"""Whether a checkpoint is the bus's own, and as far as it: only then may the query go on from it."""

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import structlog

from bus.interface import Bus
from conf.private_dir import private_dir
from streaming.sources.interface import Source, source_of


class _Noted(msgspec.Struct):
    conf: dict[str, str]


log = structlog.get_logger("isrflow.checkpoint")

BUS_FILE = "bus"
ASIDE = ".aside"
# What Spark writes into a new checkpoint first.
SPARK_FILE = "metadata"


def has_batches(checkpoint: Path) -> bool:
    """Say whether the query that wrote a checkpoint has ended any batch."""
    return bool(_numbers(checkpoint / "commits"))


def settle(checkpoint: Path, bus: Bus) -> None:
    """Leave a checkpoint from which the query may go on on this bus, or none: it then starts from the bus's state.

    One that does not fit is moved aside, in place of the one before it; it is a cache of the bus, so nothing is lost.
    This comes after the claim: nobody else may decide from there on. Raises ``OSError``.
    """
    found = _misfit(checkpoint, bus)
    if found is not None:
        move_aside(checkpoint, **found)
    if not has_batches(checkpoint):
        private_dir(checkpoint)
        (checkpoint / BUS_FILE).write_text(str(bus.bus_id()))


def move_aside(checkpoint: Path, **found: Any) -> None:
    """Move a checkpoint away, in place of the one that was before, and log what was ``found``. Raises ``OSError``."""
    aside = checkpoint.with_name(checkpoint.name + ASIDE)
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)
    # Somebody may have deleted it under a query that ran.
    with contextlib.suppress(FileNotFoundError):
        checkpoint.rename(aside)
    log.warning("moved the checkpoint aside; starting from the state on the bus", moved_to=str(aside), **found)


def _misfit(checkpoint: Path, bus: Bus) -> dict[str, Any] | None:
    """Tell why a checkpoint cannot be used on a bus; None when it can be, or holds nothing.

    The bus has decided to the end of the last batch that ended, or of the one after it, of which a kill left a plan:
    that is all that one job after the other on one checkpoint can come to. A plan beyond the end of the bus was never
    made: whoever went on from it would pass over what comes next.
    """
    if not has_batches(checkpoint):
        # The source would begin where the bus was then, and the state as it is by now.
        return {"why": "none of its batches ended"} if (checkpoint / SPARK_FILE).exists() else None
    of_bus = _read(checkpoint / BUS_FILE)
    if of_bus != str(bus.bus_id()):
        return {"why": "it is another bus's", "of_bus": of_bus, "bus": bus.bus_id()}
    ended, planned = max(_numbers(checkpoint / "commits")), max(_numbers(checkpoint / "offsets"), default=-1)
    source = source_of(bus)
    ends = [_end(checkpoint / "offsets" / str(batch), source) for batch in range(ended, planned + 1)]
    at = [end for end in ends if end is not None]
    is_whole = 1 <= len(ends) <= 2 and at == ends and at == sorted(at) and at[-1] <= source.newest_end()
    if is_whole and any(source.is_decided_to(end) for end in at):
        return None
    return {"why": "the bus is not where it is", "at": ends[-2:], "decided_seq": bus.decided_seq()}


def shuffle_partitions(checkpoint: Path) -> int | None:
    """Tell over how many partitions a checkpoint's state is spread, whatever is set by now; None where none has begun.

    Spark notes that with each batch, before where it ends.
    """
    batches = _numbers(checkpoint / "offsets")
    if not batches:
        return None
    try:
        _, noted, *_ = (checkpoint / "offsets" / str(max(batches))).read_bytes().splitlines()
        return int(msgspec.json.decode(noted, type=_Noted).conf["spark.sql.shuffle.partitions"])
    except (OSError, ValueError, KeyError, msgspec.DecodeError):
        return None


def _numbers(log_dir: Path) -> list[int]:
    """List the batches that Spark has noted in one of its logs."""
    return [int(path.name) for path in log_dir.glob("[0-9]*") if path.name.isdigit()]


def _read(file: Path) -> str | None:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _end(planned: Path, source: Source) -> int | None:
    """Read where a batch ends, from Spark's log of planned batches; None if it cannot be read."""
    try:
        offset = msgspec.json.decode(planned.read_bytes().splitlines()[-1])
    except (OSError, IndexError, msgspec.DecodeError):
        return None
    return source.end_of(offset) if isinstance(offset, Mapping) else None
