"""A broker's log directory: its logs, and the small files beside them."""

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import structlog

from brokers.files import TOO_MANY_OPEN
from brokers.mock.log.log import Log, LogConfig
from conf.private_dir import private_dir
from conf.whole_file import flush_directory, replace
from state.events import TopicPartition

logger = structlog.get_logger()

METADATA_FILE = "partition.metadata"
HIGH_WATERMARKS_FILE = "replication-offset-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
STRAY_SUFFIX = "-stray"
BORN_SUFFIX = "-born"
DOOMED_SUFFIX = "-delete"
NAME_LENGTH_MAX = 255
# Errors for which the disk is not to blame, so other replicas can go on.
_NOT_OF_THE_DISK = TOO_MANY_OPEN | {errno.ENAMETOOLONG}


class _CleanShutdown(msgspec.Struct, rename="camel"):
    version: int
    broker_epoch: int


class LogDirectory:
    """One broker's directory, with a folder ``topic-partition`` for each replica.

    A folder belongs to one topic id. If a new topic of the same name needs a folder, the old one is renamed to
    ``…-stray`` and never read again.
    """

    def __init__(self, path: Path) -> None:
        private_dir(path)
        self.path = path
        self.previous_broker_epoch = self._take_clean_shutdown()
        self._clean = self.previous_broker_epoch >= 0
        self.high_watermarks = self._read_high_watermarks()
        self.is_lost = False
        self.on_loss: Callable[[], None] = lambda: None

    def lost(self, error: OSError) -> None:
        """Treat the directory as offline for good, as Kafka does at the first I/O error in it (KIP-112).

        It stays online after an error that affects only one replica, or that passes.
        """
        if error.errno in _NOT_OF_THE_DISK:
            logger.warning("error in a log directory that stays online", path=str(self.path), why=str(error))
        elif not self.is_lost:
            logger.error("log directory offline", path=str(self.path), why=str(error))
            self.is_lost = True
            self.on_loss()

    def _take_clean_shutdown(self) -> int:
        """Read and remove the note of a clean shutdown, because it is valid for one start only."""
        marker = self.path / CLEAN_SHUTDOWN_FILE
        try:
            epoch = msgspec.json.decode(marker.read_bytes(), type=_CleanShutdown).broker_epoch
        except (OSError, msgspec.MsgspecError):
            epoch = -1
        marker.unlink(missing_ok=True)
        return epoch

    def mark_clean_shutdown(self, broker_epoch: int) -> None:
        """Note that everything is on disk, with the broker epoch of the registration that ends."""
        text = msgspec.json.encode(_CleanShutdown(version=0, broker_epoch=broker_epoch)).decode()
        replace(self.path / CLEAN_SHUTDOWN_FILE, text)

    def open_log(self, place: TopicPartition, topic_id: str, config: LogConfig) -> Log:
        """Open the replica's log, or create it."""
        folder = self._folder(place)
        if folder.exists() and (found := _topic_id_in(folder)) != topic_id:
            self._set_aside(folder, found)
        if not folder.exists():
            # Made under another name and then renamed, so that a folder of the final name always has its topic id.
            born = _renamed(folder, topic_id, BORN_SUFFIX)
            born.mkdir(exist_ok=True)
            replace(born / METADATA_FILE, f"version: 0\ntopic_id: {topic_id}\n")
            born.rename(folder)
            flush_directory(self.path)
        return Log(folder, config, self._clean, self.lost)

    def delete(self, place: TopicPartition, topic_id: str) -> None:
        """Remove the replica's folder if it belongs to that topic. Rename it first, so that no half of it is opened."""
        folder = self._folder(place)
        if _topic_id_in(folder) != topic_id:
            return
        doomed = _renamed(folder, topic_id, DOOMED_SUFFIX)
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def sweep(self, known: Mapping[TopicPartition, str]) -> None:
        """Set aside the logs of replicas that this broker no longer has. ``known`` are its replicas' topic ids.

        Folders that a kill left half made or half deleted are removed.
        """
        for suffix in (BORN_SUFFIX, DOOMED_SUFFIX):
            for remains in self.path.glob(f"*{suffix}"):
                shutil.rmtree(remains, ignore_errors=True)
        names = {self._folder(place): topic_id for place, topic_id in known.items()}
        for metadata in self.path.glob(f"*/{METADATA_FILE}"):
            folder = metadata.parent
            found = _topic_id_in(folder)
            if not folder.name.endswith(STRAY_SUFFIX) and names.get(folder) != found:
                self._set_aside(folder, found)

    def strays(self) -> int:
        """Count the logs that were set aside and that are still there. None can be seen in a lost directory."""
        try:
            names = os.listdir(self.path)
        except OSError:
            return 0
        return sum(name.endswith(STRAY_SUFFIX) for name in names)

    def _set_aside(self, folder: Path, topic_id: str) -> None:
        aside = _renamed(folder, topic_id or "unknown", STRAY_SUFFIX)
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        logger.warning("stray log set aside", path=str(aside))

    def _folder(self, place: TopicPartition) -> Path:
        return self.path / f"{place.topic}-{place.partition}"

    def _read_high_watermarks(self) -> dict[TopicPartition, int]:
        try:
            _version, count, *lines = (self.path / HIGH_WATERMARKS_FILE).read_text().splitlines()
            found = {}
            for line in lines:
                topic, partition, offset = line.split()
                found[TopicPartition(topic, int(partition))] = int(offset)
        except (OSError, ValueError):
            return {}
        return found if len(found) == int(count) else {}

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write all high watermarks. If none has changed, only check that the directory still exists."""
        if high_watermarks == self.high_watermarks:
            self.path.stat()
            return
        lines = [f"{place.topic} {place.partition} {offset}" for place, offset in sorted(high_watermarks.items())]
        replace(self.path / HIGH_WATERMARKS_FILE, "\n".join(["0", str(len(lines)), *lines]) + "\n")
        self.high_watermarks = dict(high_watermarks)


def _renamed(folder: Path, topic_id: str, suffix: str) -> Path:
    """Add a topic id and a suffix to a folder's name. A topic's name that leaves no room for them is shortened."""
    topic, dash, partition = folder.name.rpartition("-")
    rest = f"{dash}{partition}.{topic_id}{suffix}"
    return folder.with_name(topic[: NAME_LENGTH_MAX - len(rest)] + rest)


def _topic_id_in(folder: Path) -> str:
    """Return the topic id of a log; empty if it is unknown.

    Raises ``OSError`` if it cannot be read at the moment, because a log of an unknown topic would be set aside.
    """
    try:
        fields = dict(line.split(": ", 1) for line in (folder / METADATA_FILE).read_text().splitlines())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return ""
        raise
    return fields.get("topic_id", "")
