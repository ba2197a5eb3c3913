"""A connection to ZooKeeper that may outlive the loss of a server. Its calls block.

The client finds another server, or the same one again, and keeps its session if that happens in time. But the answer to
a call under way is lost, and the server may have carried the call out, or not. A read is simply made again. The caller
of a write must find out (``Session``).

A call without a connection waits until there is one again, or until ``close``.
"""

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from kazoo.exceptions import ConnectionLoss, KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from brokers.gateways.zk.client.many_reads import ManyReads, Operation
from brokers.gateways.zk.client.zookeeper_errors import ForbiddenError, LostAnswerError, ZookeeperError

# The client logs each attempt to reconnect. The gateway logs once what failed.
_QUIET = logging.getLogger("kazoo")
_QUIET.setLevel(logging.CRITICAL)
# How often a call is made whose connection is lost each time.
ATTEMPTS_MAX = 10
# The client tries to connect more and more rarely, by default up to a minute apart. No term lasts that long.
RECONNECT_DELAY_MAX_S = 0.5
# How many znodes are read by one request, and how many such answers are awaited at once. All may be in memory, here and
# in the server, and a znode has at most a megabyte.
READS_AT_ONCE = 100
ANSWERS_AT_ONCE = 3


class Connection:
    """A client of ZooKeeper.

    ``lost`` is called with the reason when the session is over. With ``connected`` the session outlives the loss of a
    connection: it is called with False then, and with True once there is a connection again. Changes in between go
    unnoticed, and no watch is left. Without ``connected`` such a session counts as lost, and no call is made twice.

    Both are called from a thread of the client, and must not block.
    """

    def __init__(
        self, hosts: str, timeout_ms: int, lost: Callable[[str], None], connected: Callable[[bool], None] | None
    ) -> None:
        self._hosts = hosts
        retry = {"max_tries": -1, "max_delay": RECONNECT_DELAY_MAX_S}
        self.client = ManyReads(hosts=hosts, timeout=timeout_ms / 1000, logger=_QUIET, connection_retry=retry)
        self._lost = lost
        self._connected = connected

    @property
    def outlives_loss(self) -> bool:
        """Whether the session goes on when a connection is lost."""
        return self._connected is not None

    def open(self, timeout_ms: int) -> None:
        """Connect. Raises ``ZookeeperError``."""
        try:
            self.client.start(timeout=timeout_ms / 1000)
        except (KazooTimeoutError, KazooException, OSError) as error:
            self.close()
            raise ZookeeperError(f"ZooKeeper cannot be reached: {error}") from error
        self.client.add_listener(self._heard)
        try:
            self._make_root(timeout_ms)
        except ZookeeperError:
            self.close()
            raise

    def _make_root(self, timeout_ms: int) -> None:
        """Make the root of ``zookeeper.connect``, as brokers do. That takes a client without this root."""
        address, slash, root = self._hosts.partition("/")
        if not root or self.asked(self.client.exists, "/") is not None:
            return
        outer = Connection(address, timeout_ms, lambda why: None, None)
        outer.open(timeout_ms)
        try:
            outer.asked(outer.client.ensure_path, slash + root)
        finally:
            outer.close()

    def _heard(self, state: str) -> None:
        if self._connected is not None and state != KazooState.LOST:
            self._connected(state == KazooState.CONNECTED)
        elif state != KazooState.CONNECTED:
            self._lost("the session with ZooKeeper is lost")

    def close(self) -> None:
        """End the session and all calls that wait."""
        with contextlib.suppress(KazooException, KazooTimeoutError, OSError):
            self.client.stop()
            self.client.close()

    def asked(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Make a call that may be made twice. Raises ``ZookeeperError``."""
        try:
            return self.tried(call, *given, **named)
        except (NoNodeError, NodeExistsError) as error:
            raise ZookeeperError(f"{type(error).__name__}: {error}") from error

    def tried(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Make a call that may be made twice. Raises ``ZookeeperError``, ``NoNodeError`` or ``NodeExistsError``."""
        attempts = 0
        while True:
            attempts += 1
            try:
                return self.once(call, *given, **named)
            except LostAnswerError:
                if not self.outlives_loss or attempts == ATTEMPTS_MAX:
                    raise

    def once(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Make a call. Raises ``LostAnswerError`` if ZooKeeper may have carried it out, or as ``tried`` does."""
        try:
            return call(*given, **named)
        except (NoNodeError, NodeExistsError):
            raise
        except ConnectionLoss as error:
            raise LostAnswerError("the connection to ZooKeeper was lost") from error
        except NoAuthError as error:
            raise ForbiddenError(f"{type(error).__name__}: {error}") from error
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise ZookeeperError(f"{type(error).__name__}: {error}") from error

    def each(self, operation: Operation, paths: Iterable[str]) -> Iterator[Any]:
        """Yield what is read of each znode, or None if it is not there. Reads ahead, and repeats lost reads."""
        for some, answer in self._under_way(operation, paths):
            for found in self._kept(operation, some, answer):
                yield None if isinstance(found, NoNodeError) else self.once(_result, found)

    def _under_way(self, operation: Operation, paths: Iterable[str]) -> Iterator[tuple[Sequence[str], Any]]:
        """Read znodes, and yield the answers to come. Waiting for one before asking for the next would take longer."""
        waiting: deque[tuple[Sequence[str], Any]] = deque()
        left = iter(paths)
        while some := list(islice(left, READS_AT_ONCE)):
            waiting.append((some, self.client.read_many_async(operation, some)))
            if len(waiting) == ANSWERS_AT_ONCE:
                yield waiting.popleft()
        yield from waiting

    def _kept(self, operation: Operation, paths: Sequence[str], answer: Any) -> list[Any]:
        try:
            return self._answered(answer)
        except LostAnswerError:
            if not self.outlives_loss:
                raise
            again: list[Any] = self.tried(lambda: self._answered(self.client.read_many_async(operation, paths)))
            return again

    def _answered(self, answer: Any) -> list[Any]:
        found: list[Any] = self.once(answer.get)
        for one in found:
            if isinstance(one, ConnectionLoss):
                self.once(_result, one)
        return found


def _result(found: Any) -> Any:
    if isinstance(found, Exception):
        raise found
    return found
