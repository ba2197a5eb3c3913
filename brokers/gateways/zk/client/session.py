"""A session with ZooKeeper: the ``/controller`` znode, guarded writes, and watches. Its calls block."""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import structlog
from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NoNodeError, NotEmptyError
from kazoo.protocol.serialization import GetChildren, GetData

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.connection import ATTEMPTS_MAX, Connection
from brokers.gateways.zk.client.transactions import Create, Delete, Failure, Write, add, failure, transactions
from brokers.gateways.zk.client.zookeeper_errors import (
    ControllerMovedError,
    ForbiddenError,
    HasChildrenError,
    LostAnswerError,
    MissingZnodeError,
    RefusedWriteError,
    ZookeeperError,
)

logger = structlog.get_logger()

# A transaction of ZooKeeper has at most a megabyte.
WRITES_AT_ONCE = 1_000
BYTES_AT_ONCE = 500_000
# How often a transaction is tried if foreign znodes are below one that it deletes.
_CLEARINGS_MAX = 10
_FEATURES = b'{"version":2,"status":1,"features":{}}'


class Session:
    """A session of one leadership. ``changed`` is called with a watched path, ``lost`` with why the leadership is over.

    Both calls come from a thread of the client.
    """

    def __init__(
        self,
        hosts: str,
        timeout_ms: int,
        changed: Callable[[str], None],
        lost: Callable[[str], None],
        connected: Callable[[bool], None] | None = None,
    ) -> None:
        self._connection = Connection(hosts, timeout_ms, lost, connected)
        self._client = self._connection.client
        self._changed = changed
        self._lost = lost
        self._epoch_version = -1
        # The version of the znode that counts the transactions, if the session outlives the loss of a connection.
        self._writes_version: int | None = None
        # The text of that znode (``written_decision``).
        self._written = b""
        # The client's own thread makes a transaction too, if ``/controller`` is removed.
        self._making = threading.Lock()
        self._controller_text = b""

    def open(self, timeout_ms: int) -> None:
        """Connect. Raises ``ZookeeperError``."""
        self._connection.open(timeout_ms)

    def close(self) -> None:
        """End the session and all calls that wait."""
        self._connection.close()

    def check_cluster(self, cluster_id: str) -> None:
        """Give a new ZooKeeper the cluster's id. Raises ``ZookeeperError`` if it is another cluster's."""
        self._connection.asked(self._client.ensure_path, znodes.CLUSTER_ID.rpartition("/")[0])
        self._created_once(znodes.CLUSTER_ID, znodes.cluster_id_text(cluster_id))
        held = self.read(znodes.CLUSTER_ID)
        found = None if held is None else znodes.cluster_id_of(held[0])
        if found != cluster_id:
            raise ZookeeperError(f"this ZooKeeper is of cluster {found}, not of {cluster_id}")

    def former_controller(self) -> int | None:
        """Return the present controller's id; None if there is none. Raises ``ZookeeperError`` or ``ZnodeError``."""
        held = self.read(znodes.CONTROLLER)
        return None if held is None else znodes.controller_of(held[0]).brokerid

    def take(
        self,
        controller: int,
        gateways: frozenset[int],
        epoch_min: int,
        time_ms: int,
        *,
        adopting: bool = False,
        from_brokers: bool = False,
        notes: Callable[[int], Sequence[Write]] = lambda epoch: (),
    ) -> int:
        """Become the controller, and return the new controller epoch.

        The znode stays when this process dies. Otherwise a broker would become the controller, and the engine would no
        longer decide. The znode is taken from a broker only with ``adopting`` or ``from_brokers``, and during a
        take-over that did not end only with ``adopting``. ``notes`` gets the new epoch. It raises an error to refuse,
        or returns writes for the same transaction.

        Raises ``ZookeeperError``.
        """
        self._make_persistent()
        data, stat = self._connection.asked(self._client.get, znodes.CONTROLLER_EPOCH)
        former, is_noted = self.former_controller(), self.read(znodes.ADOPTION) is not None
        if not (adopting or from_brokers) and former is not None and former not in gateways:
            raise ZookeeperError(f"broker {former} is the controller: only a gateway with --adopt takes its place")
        if not adopting and is_noted:
            raise ZookeeperError("this cluster was not taken over completely: start the gateway with --adopt")
        epoch = max(znodes.epoch_of(data) + 1, epoch_min)
        # If another controller raises the epoch meanwhile, the transaction fails, so it never writes outdated notes.
        noted = notes(epoch)
        transaction = self._client.transaction()
        if former is not None:
            transaction.delete(znodes.CONTROLLER)
        self._controller_text = znodes.controller_text(controller, time_ms)
        transaction.create(znodes.CONTROLLER, self._controller_text)
        transaction.set_data(znodes.CONTROLLER_EPOCH, str(epoch).encode(), version=stat.version)
        add(transaction, noted)
        failed = failure(transaction, self._connection.once(transaction.commit))
        if failed is not None:
            raise self._refusal(failed, failed.number)
        self._epoch_version = stat.version + 1
        if self._connection.outlives_loss:
            # Only the controller writes it, so its version changes only when this process writes.
            self._written, stat = self._connection.asked(self._client.get, znodes.WRITES)
            self._writes_version = stat.version
        return epoch

    def _make_persistent(self) -> None:
        for path in znodes.PERSISTENT:
            self._connection.asked(self._client.ensure_path, path)
        self._created_once("/feature", _FEATURES)
        self._created_once(znodes.CONTROLLER_EPOCH, b"0")
        if self._connection.outlives_loss:
            self._created_once(znodes.WRITES, b"")

    def keep_place(self) -> None:
        """From now on, put ``/controller`` back at once if it is removed.

        Brokers compete for a free place. Any change of the znode ends the leadership. Raises ``ZookeeperError``, and
        ``ControllerMovedError`` if another process took the place before it was watched.
        """
        if self._connection.asked(self._client.exists, znodes.CONTROLLER, watch=self._displaced) is None:
            self._put_back()
            return
        held = self.read(znodes.CONTROLLER)
        if held is not None and held[0] != self._controller_text:
            raise ControllerMovedError(f"{znodes.controller_of(held[0]).brokerid} is the controller now")

    def _displaced(self, event: Any) -> None:
        # Events without a path are about the session. The connection's listener gets them too.
        if event.path:
            self._put_back()

    def _put_back(self) -> None:
        try:
            self._make([Create(znodes.CONTROLLER, self._controller_text)])
        except (ZookeeperError, znodes.ZnodeError) as error:
            self._lost(f"somebody changed {znodes.CONTROLLER}: {error}")
        else:
            self._lost(f"somebody removed {znodes.CONTROLLER}, and this gateway put it back")

    def _created_once(self, path: str, data: bytes) -> None:
        with contextlib.suppress(NodeExistsError):
            self._connection.tried(self._client.create, path, data)

    def write(self, writes: Sequence[Write], written: bytes | None = None) -> None:
        """Make writes in order, each transaction only while this process is the controller.

        ``written`` notes the newest decision that they follow from, if any. Raises ``ControllerMovedError`` if another
        process is the controller, and ``ZookeeperError``.
        """
        if written is not None:
            self._written = written
        for part in transactions(writes, WRITES_AT_ONCE, BYTES_AT_ONCE):
            self._write(part)

    def _write(self, part: Sequence[Write]) -> None:
        for _ in range(_CLEARINGS_MAX):
            try:
                self._make(part)
            except HasChildrenError as error:
                refused = part[error.number]
                if not (isinstance(refused, Delete) and refused.whole):
                    raise
                self._clear(refused.path, {one.path for one in part})
            else:
                return
        raise RefusedWriteError("a znode gets children again and again")

    def _clear(self, path: str, planned: Collection[str]) -> None:
        """Delete the znodes below ``path``, except the ``planned`` ones, which the caller's transaction deletes."""
        found = [one for one in self._below(path) if one not in planned]
        logger.info("foreign znodes go with a topic", below=path, count=len(found))
        with contextlib.suppress(MissingZnodeError, HasChildrenError):
            self.write([Delete(one) for one in found])

    def _below(self, path: str) -> Iterator[str]:
        """Name all descendants of a znode, children before their parents."""
        for name in self.children(path):
            yield from self._below(f"{path}/{name}")
            yield f"{path}/{name}"

    def _make(self, part: Sequence[Write]) -> None:
        """Make writes in one transaction, and only once, even if the connection is lost before the answer comes.

        Each transaction requires a version of one znode, and raises it. So ZooKeeper refuses a repeated transaction if
        it was carried out the first time.
        """
        with self._making:
            for attempt in range(1, ATTEMPTS_MAX + 1):
                transaction = self._begun()
                first = len(transaction.operations)
                add(transaction, part)
                try:
                    failed = failure(transaction, self._connection.once(transaction.commit))
                except LostAnswerError:
                    if self._writes_version is None or attempt == ATTEMPTS_MAX:
                        raise
                    continue
                is_repeated = attempt > 1 and failed is not None and failed.path.endswith(znodes.WRITES)
                if failed is not None and not (is_repeated and failed.kind == BadVersionError.__name__):
                    raise self._refusal(failed, failed.number - first)
                if self._writes_version is not None:
                    self._writes_version += 1
                return

    def _begun(self) -> Any:
        """Begin a transaction that ZooKeeper refuses if another process is the controller, or if it was made before."""
        transaction = self._client.transaction()
        transaction.check(znodes.CONTROLLER_EPOCH, self._epoch_version)
        if self._writes_version is not None:
            transaction.set_data(znodes.WRITES, self._written, version=self._writes_version)
        return transaction

    def _refusal(self, failed: Failure, number: int) -> ZookeeperError:
        """Return the error that says why a transaction was refused.

        ``number`` is the place of the refused write among the caller's, and negative for any other.
        """
        message = f"a write was refused: {failed.path}: {failed.kind}"
        # A root in zookeeper.connect comes before the path.
        if number < 0 and failed.path.endswith(znodes.CONTROLLER_EPOCH):
            return ControllerMovedError(f"{self.former_controller()} is the controller now")
        if failed.kind == NoAuthError.__name__:
            return ForbiddenError(message)
        if number >= 0 and failed.kind == NotEmptyError.__name__:
            return HasChildrenError(message, number)
        if number >= 0 and failed.kind == NoNodeError.__name__:
            return MissingZnodeError(message)
        return RefusedWriteError(message)

    def read(self, path: str, watch: bool = False) -> tuple[bytes, Any] | None:
        """Return a znode's text, which may be empty, and its statistics; None if there is no such znode.

        With ``watch``, ``changed`` is called once when it is created, written or removed. Raises ``ZookeeperError``.
        """
        if watch:
            self._connection.asked(self._client.exists, path, watch=self._seen)
        try:
            data, stat = self._connection.tried(self._client.get, path)
        except NoNodeError:
            return None
        return data or b"", stat

    def read_each(self, paths: Iterable[str]) -> Iterator[tuple[bytes, Any] | None]:
        """Read many znodes as ``read`` does, in their order."""
        for found in self._connection.each(GetData, paths):
            yield None if found is None else (found[0] or b"", found[1])

    def children(self, path: str, watch: bool = False) -> list[str]:
        """List a znode's children. ``watch`` has ``changed`` called once they change. Raises ``ZookeeperError``."""
        try:
            found = self._connection.tried(self._client.get_children, path, watch=self._seen if watch else None)
        except NoNodeError:
            return []
        return sorted(found)

    def children_of_each(self, paths: Iterable[str]) -> Iterator[list[str]]:
        """List the children of many znodes, in their order."""
        for found in self._connection.each(GetChildren, paths):
            yield sorted(found or ())

    def remove(self, path: str, *, whole: bool = False) -> None:
        """Remove a znode without state, if it is there. Raises ``ControllerMovedError`` or ``ZookeeperError``.

        A gateway that was held up must not delete what the next controller put there.
        """
        with contextlib.suppress(MissingZnodeError):
            self._write([Delete(path, whole=whole)])

    def _seen(self, event: Any) -> None:
        if event.path:
            self._changed(event.path)
