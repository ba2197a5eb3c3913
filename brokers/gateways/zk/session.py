"""A session with ZooKeeper: the ``/controller`` znode, guarded writes, and watches. Its calls block."""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NodeExistsError, NoNodeError, NotEmptyError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from brokers.gateways.zk import znodes
from brokers.gateways.zk.mirror import Create, Delete, Write, transactions
from brokers.gateways.zk.transactions import add, failure

logger = structlog.get_logger()

# The client logs each attempt to reconnect. The gateway says once what failed.
_QUIET = logging.getLogger("kazoo")
_QUIET.setLevel(logging.CRITICAL)
# A transaction of ZooKeeper has at most a megabyte.
WRITES_AT_ONCE = 300
BYTES_AT_ONCE = 500_000
# How often a transaction is tried if znodes of others are below one that it deletes.
_CLEARINGS_MAX = 10
_FEATURES = b'{"version":2,"status":1,"features":{}}'


class ZookeeperError(Exception):
    """ZooKeeper cannot be reached, or refuses what should be possible."""


class RefusedWriteError(ZookeeperError):
    """ZooKeeper refused a transaction, because somebody else wrote meanwhile."""


class ForbiddenError(ZookeeperError):
    """ZooKeeper's ACLs do not let this process do it."""


class MissingZnodeError(RefusedWriteError):
    """There is no such znode."""


class HasChildrenError(RefusedWriteError):
    """A znode to be deleted has children; ``number`` is the place of the write in its transaction."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class ControllerMovedError(RefusedWriteError):
    """Another process is the controller now."""


class Session:
    """A session of one leadership. ``changed`` is called with a watched path, ``lost`` with why the leadership is over.

    Both are called from a thread of the client.
    """

    def __init__(
        self, hosts: str, timeout_ms: int, changed: Callable[[str], None], lost: Callable[[str], None]
    ) -> None:
        self._hosts = hosts
        self._client = KazooClient(hosts=hosts, timeout=timeout_ms / 1000, logger=_QUIET)
        self._changed = changed
        self._lost = lost
        self._epoch_version = -1
        self._controller_text = b""

    def open(self, timeout_ms: int) -> None:
        """Connect. Raises ``ZookeeperError``."""
        try:
            self._client.start(timeout=timeout_ms / 1000)
        except (KazooTimeoutError, KazooException, OSError) as error:
            self.close()
            raise ZookeeperError(f"ZooKeeper cannot be reached: {error}") from error
        try:
            self._make_root(timeout_ms)
        except ZookeeperError:
            self.close()
            raise
        self._client.add_listener(self._heard)

    def _make_root(self, timeout_ms: int) -> None:
        """Make the root of ``zookeeper.connect``, as brokers do. A client cannot make what is above its own root."""
        address, slash, root = self._hosts.partition("/")
        if not root or self._asked(self._client.exists, "/") is not None:
            return
        outer = Session(address, timeout_ms, lambda path: None, lambda why: None)
        outer.open(timeout_ms)
        try:
            outer._asked(outer._client.ensure_path, slash + root)
        finally:
            outer.close()

    def _heard(self, state: str) -> None:
        # A suspended session may have missed changes, so it counts as lost too.
        if state != KazooState.CONNECTED:
            self._lost("the session with ZooKeeper is lost")

    def close(self) -> None:
        with contextlib.suppress(KazooException, KazooTimeoutError, OSError):
            self._client.stop()
            self._client.close()

    def check_cluster(self, cluster_id: str) -> None:
        """Give a new ZooKeeper the cluster's id. Raises ``ZookeeperError`` if it belongs to another cluster."""
        self._asked(self._client.ensure_path, znodes.CLUSTER_ID.rpartition("/")[0])
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
        longer decide. Only with ``adopting`` or ``from_brokers`` is the znode taken from a broker, and only with
        ``adopting`` while a note says that ZooKeeper holds what the engine does not know yet. ``notes`` is given the
        new epoch. It may raise an error to refuse, or return writes for the same transaction.

        Raises ``ZookeeperError``.
        """
        for path in znodes.PERSISTENT:
            self._asked(self._client.ensure_path, path)
        self._created_once("/feature", _FEATURES)
        self._created_once(znodes.CONTROLLER_EPOCH, b"0")
        data, stat = self._asked(self._client.get, znodes.CONTROLLER_EPOCH)
        former, is_noted = self.former_controller(), self.read(znodes.ADOPTION) is not None
        if not (adopting or from_brokers) and former is not None and former not in gateways:
            raise ZookeeperError(f"broker {former} is the controller: only a gateway with --adopt takes its place")
        if not adopting and is_noted:
            raise ZookeeperError("this cluster was not taken over completely: start the gateway with --adopt")
        epoch = max(znodes.epoch_of(data) + 1, epoch_min)
        # If another controller raises the epoch meanwhile, the transaction fails. So it never writes outdated notes.
        noted = notes(epoch)
        transaction = self._client.transaction()
        if former is not None:
            transaction.delete(znodes.CONTROLLER)
        self._controller_text = znodes.controller_text(controller, time_ms)
        transaction.create(znodes.CONTROLLER, self._controller_text)
        transaction.set_data(znodes.CONTROLLER_EPOCH, str(epoch).encode(), version=stat.version)
        add(transaction, noted)
        self._committed(transaction)
        self._epoch_version = stat.version + 1
        return epoch

    def keep_place(self) -> None:
        """From now on, put ``/controller`` back at once if somebody removes it. Raises ``ZookeeperError``.

        Brokers compete for a place that is free. Whatever happens to it, the leadership is over.
        """
        if self._asked(self._client.exists, znodes.CONTROLLER, watch=self._displaced) is None:
            self._put_back()

    def _displaced(self, event: Any) -> None:
        # Events without a path are about the session, and the listener hears of these.
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
            self._tried(self._client.create, path, data)

    def write(self, writes: Sequence[Write]) -> None:
        """Make writes in order, each part only while this process is the controller.

        Raises ``ControllerMovedError`` if it is not, and ``ZookeeperError``.
        """
        for part in transactions(writes, WRITES_AT_ONCE, BYTES_AT_ONCE):
            self._write(part)

    def _write(self, part: Sequence[Write]) -> None:
        for _ in range(_CLEARINGS_MAX):
            try:
                self._make(part)
            except HasChildrenError as error:
                # The check of the epoch is the first operation.
                refused = part[error.number - 1]
                if not (isinstance(refused, Delete) and refused.whole):
                    raise
                self._clear(refused.path, {one.path for one in part})
            else:
                return
        raise RefusedWriteError("a znode gets children again and again")

    def _clear(self, path: str, planned: Collection[str]) -> None:
        """Delete the znodes below a znode, except those in ``planned``, which the caller's transaction deletes."""
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
        transaction = self._client.transaction()
        transaction.check(znodes.CONTROLLER_EPOCH, self._epoch_version)
        add(transaction, part)
        self._committed(transaction)

    def _committed(self, transaction: Any) -> None:
        failed = failure(transaction, self._asked(transaction.commit))
        if failed is None:
            return
        number, path, kind = failed
        # A root in zookeeper.connect stands before the path.
        if number == 0 and path.endswith(znodes.CONTROLLER_EPOCH):
            raise ControllerMovedError(f"{self.former_controller()} is the controller now")
        message = f"a write was refused: {path}: {kind}"
        if kind == NoAuthError.__name__:
            raise ForbiddenError(message)
        if kind == NotEmptyError.__name__:
            raise HasChildrenError(message, number)
        raise (MissingZnodeError if kind == NoNodeError.__name__ else RefusedWriteError)(message)

    def read(self, path: str, watch: bool = False) -> tuple[bytes, Any] | None:
        """Return a znode's text, which may be empty, and its statistics; None if there is no such znode.

        With ``watch``, ``changed`` is called once when it is made, written or removed. Raises ``ZookeeperError``.
        """
        if watch:
            self._asked(self._client.exists, path, watch=self._seen)
        try:
            data, stat = self._tried(self._client.get, path)
        except NoNodeError:
            return None
        return data or b"", stat

    def children(self, path: str, watch: bool = False) -> list[str]:
        """List the children of a znode; ``changed`` is called once when they change. Raises ``ZookeeperError``."""
        call = self._client.get_children
        try:
            found = self._tried(call, path, watch=self._seen) if watch else self._tried(call, path)
        except NoNodeError:
            return []
        return sorted(found)

    def remove(self, path: str, *, whole: bool = False) -> None:
        """Remove a znode that carries no state, if it is there and this process is still the controller.

        Otherwise a gateway that was held up would delete what the next controller put there. Raises
        ``ControllerMovedError`` or ``ZookeeperError``.
        """
        with contextlib.suppress(MissingZnodeError):
            self._write([Delete(path, whole=whole)])

    def _seen(self, event: Any) -> None:
        if event.path:
            self._changed(event.path)

    def _asked(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return self._tried(call, *given, **named)
        except (NoNodeError, NodeExistsError) as error:
            raise ZookeeperError(f"{type(error).__name__}: {error}") from error

    def _tried(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Do the same as ``_asked``, but let the errors out that say whether a znode is there."""
        try:
            return call(*given, **named)
        except (NoNodeError, NodeExistsError):
            raise
        except NoAuthError as error:
            raise ForbiddenError(f"{type(error).__name__}: {error}") from error
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise ZookeeperError(f"{type(error).__name__}: {error}") from error
