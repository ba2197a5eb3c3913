"""Open a gateway's log. Rebuild it if it is lost or damaged, and if that is possible without guessing.

A rebuild tries the sources in this order: the bus, if it still has all decisions; another gateway of the quorum;
brokers' copies. A rebuilt log is compared with the decisions before it takes the place of the former one, which is set
aside and never removed.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog

from brokers.engine.retry import retry
from brokers.gateways.kraft.log import directory as directories
from brokers.gateways.kraft.log.comparison import compared, is_trimmed
from brokers.gateways.kraft.log.errors import DamagedError, LackingError, StorageError
from brokers.gateways.kraft.log.metadata_log import MetadataLog
from brokers.gateways.kraft.log.storage import Storage
from brokers.gateways.kraft.rebuilding import peer
from brokers.gateways.kraft.rebuilding.proven_log import write_proven_log
from brokers.gateways.kraft.settings import Identity
from brokers.gateways.shared.whole_events import UnknownDecisionError
from brokers.voters import Voter
from brokers.wire.security.connecting import Client
from bus.interface import Bus

logger = structlog.get_logger()

_PAUSE_S = 0.25
# Enough to set aside two snapshots and then the log. A disk that still fails then must be replaced.
_ATTEMPTS = 6
# Another gateway that starts at the same time gets this long before brokers' copies are tried.
PEERS_FIRST_S = 3.0
HINT = (
    "If another gateway of the quorum runs, this one rebuilds its log from there. Otherwise name brokers' copies with "
    "rebuild.from.dirs, or use 'isrflow cluster rebuild'"
)


_OPEN = Client()
T = TypeVar("T")


class Opening:
    """The locked directory of a log, and the storage in it once it is open."""

    def __init__(
        self,
        identity: Identity,
        *,
        snapshot_interval_bytes: int,
        rebuild_wait_max_ms: int,
        client: Client = _OPEN,
    ) -> None:
        """Lock the directory. Raises ``StorageError`` when another process has the lock."""
        self._identity = identity
        self._client = client
        self._directory = identity.directory
        self._snapshot_interval_bytes = snapshot_interval_bytes
        self._wait_max_s = rebuild_wait_max_ms / 1000
        self._lock = directories.locked(self._directory)
        self._storage: Storage | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="opening")

    async def storage(self, bus: Bus, unreachable_max_ms: int) -> Storage:
        """Open the log and compare it with the decisions, after a rebuild if one is needed.

        Raises ``BusError``, ``UnknownDecisionError``, ``StorageError`` if the log can be neither served nor rebuilt.
        """
        directories.finish_replacement(self._directory)
        for _ in range(_ATTEMPTS):
            try:
                return await retry(partial(self._in_thread, self._begun, bus), unreachable_max_ms)
            except (DamagedError, LackingError) as error:
                await retry(partial(self._mend, error, bus), unreachable_max_ms)
        raise StorageError(f"{self._directory} was damaged again right after it was rebuilt: its disk may be failing")

    async def _in_thread(self, work: Callable[..., T], *given: Any) -> T:
        """Run work that reads or writes a whole log, while the event loop serves others."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    def _begun(self, bus: Bus) -> Storage:
        storage = Storage(self._directory, self._lock, snapshot_interval_bytes=self._snapshot_interval_bytes)
        try:
            storage.begin(bus)
        except BaseException:
            storage.abandon()
            raise
        # Kept here for ``close``, because the task that waits for this thread may have been cancelled.
        self._storage = storage
        return storage

    def close(self) -> None:
        """Close the storage if it is open, and release the directory. This waits for what is being read or written."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        if self._storage is not None:
            self._storage.close()
        self._lock.close()

    async def _mend(self, error: DamagedError | LackingError, bus: Bus) -> None:
        """Replace a log that cannot be served by a sound one. Raises ``StorageError`` if that is impossible."""
        logger.warning("the metadata log cannot be served", why=str(error))
        if isinstance(error, DamagedError) and error.spare is not None and error.spare.parent == self._directory:
            aside = directories.set_aside(self._directory, error.spare)
            logger.warning("a file was set aside", file=error.spare.name, aside=str(aside))
        elif isinstance(error, DamagedError) and not is_trimmed(bus, 0):
            aside = directories.set_aside(self._directory)
            logger.warning("the log is rebuilt from the bus", aside=str(aside))
        else:
            why = await self._replaced(bus)
            if why:
                raise type(error)(f"{error}. It could not be rebuilt: {'; '.join(why)}. {HINT}")

    async def _replaced(self, bus: Bus) -> Sequence[str]:
        """Rebuild the log from other gateways or copies. If that fails until the time is over, return why."""
        loop = asyncio.get_running_loop()
        began, others = loop.time(), [v for v in self._identity.voters if v.voter != self._identity.gateway]
        while True:
            waited_s = loop.time() - began
            why: list[str] = []
            for voter in others:
                if not (failed := await self._copied(voter, bus)):
                    return []
                why.append(failed)
            if self._identity.copies and (not others or waited_s >= min(PEERS_FIRST_S, self._wait_max_s)):
                failed = await self._in_thread(self._from_copies, bus)
                if not failed:
                    return []
                why.append(failed)
            if not others or waited_s >= self._wait_max_s:
                return why or ["there is no other gateway, and no copy of a broker was named"]
            await asyncio.sleep(_PAUSE_S)

    async def _copied(self, voter: Voter, bus: Bus) -> str:
        """Copy the log of another gateway. Return an empty string, or why that failed."""
        into = directories.start_replacement(self._directory)
        try:
            await peer.copy(voter, self._identity.cluster_id, into, self._client)
            await self._in_thread(_check, into, bus)
        except (peer.PeerError, StorageError, UnknownDecisionError) as error:
            return str(error)
        directories.install_replacement(self._directory)
        logger.warning("the log was taken from another gateway", gateway=str(voter))
        return ""

    def _from_copies(self, bus: Bus) -> str:
        """Make the log from brokers' copies. Return an empty string, or why that failed."""
        try:
            copy = _rebuild(self._identity, bus)
        except (StorageError, UnknownDecisionError) as error:
            return str(error)
        logger.warning("the log was taken from a broker's copy", copy=str(copy))
        return ""


def _check(directory: Path, bus: Bus) -> None:
    """Compare a rebuilt log with the decisions. Raises ``StorageError`` or ``UnknownDecisionError``."""
    log = MetadataLog(directory, is_copy=True)
    try:
        compared(log, bus)
    finally:
        log.close()


def rebuild(identity: Identity, bus: Bus, without: frozenset[int] = frozenset()) -> Path:
    """Rebuild a log from brokers' copies at once, and return the copy that was taken.

    The brokers in ``without`` will not start again, so their copies may be missing. Raises ``StorageError`` or
    ``UnknownDecisionError``.
    """
    with directories.locked(identity.directory):
        directories.finish_replacement(identity.directory)
        try:
            return _rebuild(identity, bus, without)
        except (StorageError, UnknownDecisionError):
            # This removes the log that is not finished.
            directories.finish_replacement(identity.directory)
            raise


def _rebuild(identity: Identity, bus: Bus, without: frozenset[int] = frozenset()) -> Path:
    into = directories.start_replacement(identity.directory)
    copy = write_proven_log(identity.copies, identity.cluster_id, bus, into, without)
    _check(into, bus)
    directories.install_replacement(identity.directory)
    return copy
