"""Whether the query may continue from a checkpoint: only if it belongs to the bus and is as far as the bus.

The problem: two places say how far the job has come. The bus has the decisions and the state, and Spark's checkpoint
has the operator's state and the log of batches. A kill, a restored backup or another job can leave them apart. A query
that continues from the wrong place decides events twice or skips them.

The insight: the bus is the truth, and the checkpoint is a cache of it. So a doubtful checkpoint is never repaired. It
is moved aside, and the query starts from the state on the bus. What remains is to recognize the two healthy cases.

    Spark plans batch n   ──►  bus commits batch n  ──►  Spark notes the end of batch n
      offsets/n                                            commits/n

    killed at                  offsets   commits   bus is at the end of
    between two batches        … n       … n       batch n
    in batch n + 1             … n + 1   … n       batch n, or n + 1 after its commit

Every other checkpoint is moved aside: one with a gap between its batches, with an end that goes back or lies beyond the
bus, or of another bus. A planned end beyond the bus would skip events that come later. A checkpoint without a finished
batch is moved aside too, because Spark would read from where the bus was then, with the state that the bus has now.

The checkpoint of a job that has just taken over may look like any of these. So a job checks right before the move that
it still holds the claim.
"""

import contextlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from bus.interface import Bus
from conf.private_dir import private_dir
from streaming.checkpoint_place import Checkpoint
from streaming.hadoop_path import HadoopPath
from streaming.job_errors import JobError


class _Noted(msgspec.Struct):
    conf: dict[str, str]


logger = structlog.get_logger("isrflow.checkpoint")

BUS_FILE = "bus"
ASIDE = ".aside"
# How ``streaming/shard.py`` keeps a shard in Spark's state. isrflow 0.1.0 noted none.
_FORMAT = 2
# The first file that Spark writes into a new checkpoint.
SPARK_FILE = "metadata"


def has_batches(checkpoint: Checkpoint) -> bool:
    """Return whether the query that wrote a checkpoint has finished any batch."""
    return bool(_numbers(checkpoint / "commits"))


def check_own(checkpoint: Checkpoint, bus: Bus) -> None:
    """Raise ``JobError`` if a checkpoint is a URI and belongs to another bus.

    Such a checkpoint is not moved aside. A path has a lock that says whether the other bus's job runs. A URI has none.
    """
    of_bus = _read(checkpoint / BUS_FILE) if isinstance(checkpoint, HadoopPath) else None
    if of_bus and not _is_of(of_bus, bus):
        raise JobError(
            f"checkpoint {checkpoint} belongs to another bus: name another one in checkpoint.dir, or delete it"
        )


def _is_of(state_id: str, bus: Bus) -> bool:
    return state_id.partition(".")[0] == str(bus.bus_id())


def settle(checkpoint: Checkpoint, bus: Bus, partitions: int, check_held: Callable[[], None] = lambda: None) -> None:
    """Leave a checkpoint from which the query may continue on this bus over ``partitions``, or none.

    Without a checkpoint the query starts from the bus's state. A checkpoint that does not fit is moved aside, and
    replaces the one that was moved aside before. Call this after the claim, when no other job can decide.
    ``check_held`` raises if another job has claimed since. Raises ``OSError``, and ``JobError`` if the checkpoint is a
    URI and belongs to another bus.
    """
    check_own(checkpoint, bus)
    found = _misfit(checkpoint, bus, partitions)
    if found is not None:
        move_aside(checkpoint, check_held, **found)
    if not has_batches(checkpoint):
        if isinstance(checkpoint, HadoopPath):
            checkpoint.make()
        else:
            private_dir(checkpoint)
        vouch(checkpoint, bus)


def vouch(checkpoint: Checkpoint, bus: Bus) -> None:
    """Write down that a checkpoint holds the state of this bus. Raises ``OSError``.

    A checkpoint with batches but without this is moved aside (``settle``).
    """
    (checkpoint / BUS_FILE).write_text(_state_id(bus))


def move_aside(checkpoint: Checkpoint, check_held: Callable[[], None], **found: Any) -> None:
    """Move a checkpoint away, in place of the previous one, and log what was ``found``. Raises ``OSError``.

    Raises what ``check_held`` raises if another job has claimed, because the checkpoint is that job's now.
    """
    aside = checkpoint.with_name(checkpoint.name + ASIDE)
    if isinstance(aside, HadoopPath):
        aside.remove()
    elif aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)
    # Only now, because the steps before take a while, and this process may have stood still.
    check_held()
    # A user may have deleted it while the query ran.
    with contextlib.suppress(FileNotFoundError):
        checkpoint.rename(aside)  # type: ignore[arg-type]
    logger.warning("moved the checkpoint aside; starting from the state on the bus", moved_to=str(aside), **found)


def _misfit(checkpoint: Checkpoint, bus: Bus, partitions: int) -> dict[str, Any] | None:
    """Return why a checkpoint cannot be used on a bus over ``partitions``; None if it can be, or if it is empty."""
    if not has_batches(checkpoint):
        # Spark would read from where the bus was then, with the state that the bus has now.
        return {"why": "none of its batches has ended"} if (checkpoint / SPARK_FILE).exists() else None
    of_bus, state_id = _read(checkpoint / BUS_FILE), _state_id(bus)
    if of_bus is None:
        return {"why": "it names no bus"}
    if not _is_of(of_bus, bus):
        return {"why": "it belongs to another bus", "of_bus": of_bus, "bus": bus.bus_id()}
    noted = _shuffle_partitions(checkpoint)
    if noted not in (None, partitions):
        # Spark would go on with the number of the first batch.
        return {"why": "shuffle.partitions was changed", "checkpoint_has": noted, "now": partitions}
    if of_bus != state_id:
        return {"why": "it has the state in another layout", "layout": of_bus, "now": state_id}
    ended, planned = max(_numbers(checkpoint / "commits")), max(_numbers(checkpoint / "offsets"), default=-1)
    ends = [_end(checkpoint / "offsets" / str(batch)) for batch in range(ended, planned + 1)]
    at = [end for end in ends if end is not None]
    if damage := _damage(ended, planned, ends, at):
        return {"why": f"it is damaged: {damage}"}
    if at[-1] <= bus.last_seq() and any(is_decided_to(bus, end) for end in at):
        return None
    return {"why": "the bus is at another place", "at": at, "decided_seq": bus.decided_seq()}


def is_decided_to(bus: Bus, end: int) -> bool:
    """Return whether the bus has decided all events of a batch that ends at ``end``, and none after it.

    There may be no event at ``end`` or just before it, because markers of Kafka's transactions take places too.
    """
    decided = bus.decided_seq()
    return decided <= end <= bus.last_seq() and not bus.recorded(decided, end, 1, 1)


def _damage(ended: int, planned: int, ends: list[int | None], at: list[int]) -> str | None:
    """Return what Spark would not have written like this; None if all is as it writes it.

    Batch ``ended`` was the last one to end, ``planned`` was planned last, and ``ends`` are their ends and those between
    them, as far as they can be read.
    """
    unread = [batch for batch, end in enumerate(ends, start=ended) if end is None]
    if planned < ended:
        return f"batch {ended} has ended, but was never planned"
    if unread:
        return f"offsets/{unread[0]} is missing or cannot be read"
    if len(at) > 2:
        return f"batches up to {planned} are planned, but only {ended} has ended"
    return None if at == sorted(at) else f"batch {planned} ends before the one before it"


def _state_id(bus: Bus) -> str:
    """Return what identifies the state that a checkpoint holds.

    These are the bus, how often its state was laid out in other shards or pages, and how the operator keeps it.
    """
    return f"{bus.bus_id()}.{bus.layouts()}.{_FORMAT}"


def _shuffle_partitions(checkpoint: Checkpoint) -> int | None:
    """Return over how many partitions a checkpoint's state is spread; None if that cannot be read.

    Spark notes the number with each batch that it plans.
    """
    batches = _numbers(checkpoint / "offsets")
    if not batches:
        return None
    try:
        _, noted, *_ = (checkpoint / "offsets" / str(max(batches))).read_bytes().splitlines()
        return int(msgspec.json.decode(noted, type=_Noted).conf["spark.sql.shuffle.partitions"])
    except (OSError, ValueError, KeyError, msgspec.DecodeError):
        return None


def _numbers(log_dir: Checkpoint) -> list[int]:
    """Return the batches in one of Spark's logs."""
    return [int(path.name) for path in log_dir.glob("[0-9]*") if path.name.isdigit()]


def _read(file: Checkpoint) -> str | None:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _end(planned: Checkpoint) -> int | None:
    """Read where a batch ends, from Spark's log of planned batches; None if it cannot be read."""
    try:
        offset = msgspec.json.decode(planned.read_bytes().splitlines()[-1])
    except (OSError, IndexError, msgspec.DecodeError):
        return None
    end = offset.get("seq") if isinstance(offset, Mapping) else None
    return end if isinstance(end, int) else None
