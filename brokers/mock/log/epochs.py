"""The leader epoch checkpoint: the offset at which each leader epoch begins in a log (KIP-101)."""

from pathlib import Path
from typing import NamedTuple

from conf.whole_file import replace

FILE = "leader-epoch-checkpoint"
UNDEFINED = -1


class Entry(NamedTuple):
    """The records of ``epoch`` begin at ``start_offset``."""

    epoch: int
    start_offset: int


class EndOffset(NamedTuple):
    """The answer to an OffsetForLeaderEpoch: the largest epoch not above the one asked for, and where it ends."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The entries of one log. Epochs and start offsets both strictly increase.

    If a change cannot be written, ``OSError`` is raised. The change counts, and the next change writes it too.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._entries = self._stored = _read(self._path)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        return self._entries[-1].epoch if self._entries else UNDEFINED

    def last_before(self, end_offset: int) -> int:
        """Return the latest epoch that begins before ``end_offset``, so that it has a record there."""
        return next((e.epoch for e in reversed(self._entries) if e.start_offset < end_offset), UNDEFINED)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that ``epoch`` begins at ``start_offset``, and drop the entries that contradict it."""
        if epoch != self.latest:
            kept = [e for e in self._entries if e.epoch < epoch and e.start_offset < start_offset]
            self._entries = [*kept, Entry(epoch, start_offset)]
        self._write()

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or after ``end_offset``."""
        self._keep([e for e in self._entries if e.start_offset < end_offset])

    def clear(self) -> None:
        self._keep([])

    def end_offset_of(self, epoch: int, log_end_offset: int) -> EndOffset:
        """Find where ``epoch`` ends in this log (``LeaderEpochFileCache.endOffsetFor``).

        An epoch above all known ones is undefined. For an epoch without records here, the answer is about the nearest
        one below.
        """
        if epoch == UNDEFINED or epoch > self.latest:
            return EndOffset(UNDEFINED, UNDEFINED)
        if epoch == self.latest:
            return EndOffset(epoch, log_end_offset)
        following = next(e for e in self._entries if e.epoch > epoch)
        below = [e for e in self._entries if e.epoch <= epoch]
        return EndOffset(below[-1].epoch if below else epoch, following.start_offset)

    def _keep(self, entries: list[Entry]) -> None:
        if entries != self._entries:
            self._entries = entries
        self._write()

    def _write(self) -> None:
        if self._entries is self._stored:
            return
        lines = ["0", str(len(self._entries)), *(f"{e.epoch} {e.start_offset}" for e in self._entries)]
        replace(self._path, "\n".join(lines) + "\n")
        self._stored = self._entries


def _read(path: Path) -> list[Entry]:
    """Read a checkpoint. An unreadable one counts as empty, because the log itself holds the epochs."""
    try:
        _version, count, *lines = path.read_text().splitlines()
        entries = [Entry(*map(int, line.split())) for line in lines]
        is_whole = len(entries) == int(count)
    except (OSError, ValueError, TypeError):
        return []
    return entries if is_whole else []
