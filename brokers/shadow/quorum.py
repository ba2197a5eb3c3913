"""The controllers of a quorum, of which one is active: it is found, asked, and followed when another one takes over."""

import asyncio
from collections.abc import Sequence

import structlog

from brokers.shadow.controller_line import ControllerLine, Endpoint
from brokers.wire.errors import ErrorCode, name_of
from brokers.wire.messages import WireError
from brokers.wire.schema import Values
from brokers.wire.security.connecting import Client, NotLetInError
from bus.clock import steady_ms

logger = structlog.get_logger()

PATIENCE_MS = 300_000
_PAUSE_MS, _PAUSE_MS_MAX = 100, 1_000
_SAID_MAX = 16
# A controller that has just started may not know the passwords yet. It logs each refusal.
_REFUSALS_MAX = 3
_REFUSED_PAUSE_MS = 2_000
# The answers that say to ask another controller, or in another epoch.
_ELSEWHERE = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_MEANINGS: dict[int, str] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "the principal may not read the metadata log: it needs CLUSTER_ACTION on the cluster"
    ),
    ErrorCode.INCONSISTENT_CLUSTER_ID: "it belongs to another cluster",
    ErrorCode.UNKNOWN_TOPIC_ID: "it does not serve the metadata log: expected the listener of a controller",
}
LOST = (OSError, EOFError, TimeoutError, WireError)


class NoControllerError(Exception):
    """No controller has served this reader for a while. The message names the servers and what each of them said."""


class RefusedReaderError(Exception):
    """A controller refuses this reader, and would again."""


class Quorum:
    """The connection to the active controller. One task at a time may use it.

    Raises ``NoControllerError`` when no controller has served it for ``patience_ms``.
    """

    def __init__(self, bootstrap: Sequence[Endpoint], client: Client, patience_ms: int = PATIENCE_MS) -> None:
        if not bootstrap:
            raise ValueError("expected at least one controller")
        self.leader: Endpoint | None = None
        # Its node id; -1 if that is not known.
        self.leader_id = -1
        # Of the newest leader that is known.
        self.epoch = 0
        self.client = client
        self._bootstrap = tuple(bootstrap)
        self._patience_ms = patience_ms
        self._line: ControllerLine | None = None
        self._next = 0
        self._failures = 0
        self._refusals = 0
        self._served_ms = steady_ms()
        self._said: dict[Endpoint, str] = {}

    async def line(self) -> ControllerLine:
        """Return the open connection to the active controller, or else to one that may name it.

        Tries each server in turn until one answers. Raises ``NoControllerError``, ``RefusedReaderError`` or
        ``UnfitServerError``.
        """
        if self._line is not None and self._line.is_due:
            self._close()
        while self._line is None:
            endpoint = self.leader or self._bootstrap[self._next % len(self._bootstrap)]
            try:
                self._line = await ControllerLine.open(endpoint, self.client)
                self._refusals = 0
            except NotLetInError as error:
                self._refusals += 1
                if self._refusals >= _REFUSALS_MAX:
                    raise RefusedReaderError(f"{endpoint}: {error}") from error
                await self.lose(endpoint, str(error), _REFUSED_PAUSE_MS)
            except LOST as error:
                await self.lose(endpoint, str(error) or type(error).__name__)
        return self._line

    def serves(self, line: ControllerLine) -> None:
        """Note that the controller at the other end of a line is the active one."""
        if self.leader != line.endpoint:
            logger.info("following a controller", controller=str(line.endpoint), epoch=self.epoch)
        self.leader = line.endpoint
        self._served_ms = steady_ms()
        self._failures = 0
        self._said.clear()

    async def turn(self, line: ControllerLine, code: int, partition: Values, endpoints: Sequence[Values]) -> None:
        """Go where an error sends this reader: to the leader that it names, or else to the next server.

        Raises ``NoControllerError`` or ``RefusedReaderError``.
        """
        named = name_of(code)
        if code not in _ELSEWHERE:
            raise RefusedReaderError(f"{line.endpoint} answers {named}: {_MEANINGS.get(code, 'this was not expected')}")
        leader_id, epoch = partition["CurrentLeader"]["LeaderId"], partition["CurrentLeader"]["LeaderEpoch"]
        is_news = epoch > self.epoch
        self.epoch = max(self.epoch, epoch)
        places = {one["NodeId"]: Endpoint(one["Host"], one["Port"]) for one in endpoints}
        leader = places.get(leader_id) if epoch == self.epoch else None
        if leader in (None, line.endpoint):
            # It may be the leader itself, asked in a former epoch.
            if not is_news:
                await self.lose(line.endpoint, f"answers {named}, and names no other leader")
            return
        if is_news:
            self._close()
            self.leader = leader
        else:
            await self.lose(line.endpoint, f"answers {named}, and names {leader}", leader=leader)

    async def lose(
        self, endpoint: Endpoint, why: str, pause_ms: int = _PAUSE_MS, leader: Endpoint | None = None
    ) -> None:
        """Leave a server, and pause; the next one to ask is ``leader`` if it is known."""
        self._close()
        self.leader = leader
        if leader is None:
            self._next += 1
        self._said.pop(endpoint, None)
        self._said[endpoint] = why
        if len(self._said) > _SAID_MAX:
            del self._said[next(iter(self._said))]
        self._failures += 1
        if self._failures == 1:
            logger.warning("a controller does not serve", controller=str(endpoint), why=why)
        away_ms = steady_ms() - self._served_ms
        if away_ms > self._patience_ms:
            said = "; ".join(f"{one}: {what}" for one, what in self._said.items())
            raise NoControllerError(f"no controller has served the metadata log for {away_ms // 1000} s: {said}")
        await asyncio.sleep(min(_PAUSE_MS_MAX, pause_ms * self._failures) / 1000)

    def _close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    @property
    def silent_ms(self) -> int:
        """For how long the active controller has not answered this reader."""
        return steady_ms() - self._served_ms

    def close(self) -> None:
        """Close the connection."""
        self._close()
