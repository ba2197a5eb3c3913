"""The task that follows one leader: find where the two logs agree, then fetch (Kafka's ``ReplicaFetcherThread``).

The problem: a broker that comes back, or gets a new leader, may hold records that the leader never had. If it fetched
from its own log end, the two logs would always differ at the same offsets. Cutting the log at the high watermark does
not help: the follower learns of a high watermark later than its leader, so it would drop committed records, and lose
them for good if it led next (KIP-101).

The insight: one leader epoch has one writer. Two logs that both hold records of epoch E agree on all of them, up to
where the shorter run of E ends. So the follower asks its leader where the follower's latest epoch ends:

    leader     e1: 0 1 2 3 | e3: 4 5 6           "Where does e2 end?"  "My latest below is e1, which ends at 4."
    follower   e1: 0 1 2 3 4 | e2: 5 6           cuts to 4, then fetches from 4

The leader may name an epoch that the follower does not have. Then the follower cuts to where that epoch would end here,
and asks again about a lower epoch. Every round goes down by at least one, so this ends (``truncation``; KIP-279).

    added -> truncating --(logs agree)--> fetching --(offset out of range)--> truncating

After an error of one partition, only that partition pauses for a moment, and then continues where it was.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import structlog

from brokers.mock.log.epochs import EndOffset
from brokers.mock.messages import EARLIEST, LATEST, Asked
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.connection import Connection
from brokers.mock.replicas.partition import Partition, name_of
from brokers.mock.replicas.requests import epoch_ends_request, fetch_request, offset_request
from brokers.mock.replicas.truncation import epoch_to_ask, truncation
from brokers.mock.settings import Settings
from brokers.wire.catalogue import Values
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.messages import WireError
from state.events import TopicPartition

logger = structlog.get_logger()

CONNECT_TIMEOUT_MS = 2_000
BACKOFF_MAX_MS = 2_000
# For everything in a response except records.
_ROOM_BYTES = 64 * 1024 * 1024


class _Followed:
    """A partition of this fetcher: the epoch in which it is followed, and when it may continue."""

    __slots__ = ("epoch", "partition", "resumes", "truncating")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.truncating = True
        self.resumes = 0.0


class Fetcher:
    """The task that fetches from ``leader`` for all partitions that were added.

    If a partition is removed, or gets another epoch, during a request for it, its part of the response is dropped.
    """

    def __init__(self, broker: int, leader: int, metadata: Metadata, settings: Settings, log_end_changed: Any) -> None:
        self._broker = broker
        self._leader = leader
        self._metadata = metadata
        self._settings = settings
        self._log_end_changed = log_end_changed
        self._followed: dict[TopicPartition, _Followed] = {}
        self._added = asyncio.Event()
        self._connection: Connection | None = None
        self._long_poll = False
        self._interrupted = False
        self.broker_epoch = -1

    @property
    def idle(self) -> bool:
        return not self._followed

    def epoch_of(self, place: TopicPartition) -> int | None:
        """Return the leader epoch in which ``place`` is fetched; None if it is not."""
        followed = self._followed.get(place)
        return None if followed is None else followed.epoch

    def add(self, partition: Partition) -> None:
        """Begin to follow a partition at once. A fetch that waits for other partitions is interrupted."""
        self._followed[partition.place] = _Followed(partition)
        self._added.set()
        if self._long_poll:
            self._interrupted = True
            self._disconnect()

    def remove(self, place: TopicPartition) -> None:
        self._followed.pop(place, None)

    async def run(self) -> None:
        """Fetch until cancelled. Any failure is retried after a growing pause."""
        pause_ms = self._settings.replica_fetch_backoff_ms
        try:
            while True:
                try:
                    await self._round()
                    pause_ms = self._settings.replica_fetch_backoff_ms
                    continue
                except (OSError, TimeoutError, WireError) as error:
                    if self._interrupted:
                        continue
                    logger.info("fetch failed", leader=self._leader, why=str(error) or type(error).__name__)
                    self._disconnect()
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = min(2 * pause_ms, BACKOFF_MAX_MS)
        finally:
            self._disconnect()

    async def _round(self) -> None:
        self._interrupted = False
        ready = await self._ready()
        if self._connection is None:
            self._connection = await self._connect()
        truncating = [f for f in ready if f.truncating and self._current(f)]
        if truncating:
            await self._truncate(truncating)
        fetching = [f for f in ready if not f.truncating and self._current(f)]
        if fetching:
            await self._fetch(fetching)

    async def _ready(self) -> list[_Followed]:
        """Return the partitions that may continue, once there are any."""
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            ready = [f for f in self._followed.values() if f.resumes <= now]
            if ready:
                return ready
            self._added.clear()
            wait = min((f.resumes - now for f in self._followed.values()), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._added.wait()

    async def _connect(self) -> Connection:
        endpoint = self._metadata.endpoint(self._leader)
        if endpoint is None:
            raise WireError(f"broker {self._leader} has no endpoint")
        # The requested bytes, and one more batch, which may be as large as the request that brought it to the leader.
        limit = self._settings.replica_fetch_response_max_bytes + self._settings.socket_request_max_bytes + _ROOM_BYTES
        name = f"broker-{self._broker}-fetcher"
        return await Connection.open(endpoint.host, endpoint.port, name, CONNECT_TIMEOUT_MS, limit)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _ask(self, asked: Asked) -> Values:
        if self._connection is None:
            # A partition was added after the long poll's response had come, and before this task continued.
            raise WireError("interrupted")
        return await self._connection.ask(asked, self._settings.replica_socket_timeout_ms)

    def _current(self, followed: _Followed) -> bool:
        return self._followed.get(followed.partition.place) is followed

    def _rest(self, followed: _Followed) -> None:
        followed.resumes = asyncio.get_running_loop().time() + self._settings.replica_fetch_backoff_ms / 1000

    def _refused(self, followed: _Followed, code: int) -> None:
        """Pause a partition after an error, because its leader or this broker has not heard of a change yet."""
        logger.info("follower refused", leader=self._leader, partition=name_of(followed.partition.place), code=code)
        self._rest(followed)

    @contextlib.contextmanager
    def _resting(self, followed: _Followed) -> Iterator[None]:
        """Pause a partition if its log refuses what the leader sent or asks for."""
        try:
            yield
        except RefusedError as error:
            self._refused(followed, error.code)

    # Truncating

    async def _truncate(self, truncating: list[_Followed]) -> None:
        requested: dict[TopicPartition, tuple[_Followed, int]] = {}
        for followed in truncating:
            epoch = epoch_to_ask(followed.partition.log)
            if epoch is None:
                with self._resting(followed):
                    if followed.partition.truncate(followed.epoch, followed.partition.log.log_end_offset):
                        self._agreed(followed)
            else:
                requested[followed.partition.place] = (followed, epoch)
        if not requested:
            return
        asked = epoch_ends_request(self._broker, [(place, f.epoch, epoch) for place, (f, epoch) in requested.items()])
        response = await self._ask(asked)
        for topic in response["Topics"]:
            for answer in topic["Partitions"]:
                place = TopicPartition(topic["Topic"], answer["Partition"])
                if place in requested and self._current(followed := requested[place][0]):
                    with self._resting(followed):
                        self._cut(followed, answer)

    def _cut(self, followed: _Followed, answer: Values) -> None:
        if answer["ErrorCode"]:
            self._refused(followed, answer["ErrorCode"])
            return
        partition = followed.partition
        before = partition.log.log_end_offset
        end = EndOffset(answer["LeaderEpoch"], answer["EndOffset"])
        found = truncation(partition.log, partition.high_watermark, end)
        name = name_of(partition.place)
        if found.offset < partition.high_watermark:
            logger.warning("truncated below the high watermark", partition=name, offset=found.offset)
        if not partition.truncate(followed.epoch, found.offset):
            return
        if partition.log.log_end_offset < before:
            logger.info("truncated", partition=name, before=before, to=partition.log.log_end_offset)
        if found.complete:
            self._agreed(followed)

    def _agreed(self, followed: _Followed) -> None:
        followed.truncating = False
        followed.partition.truncated(followed.epoch)
        self._log_end_changed(followed.partition)

    # Fetching

    async def _fetch(self, fetching: list[_Followed]) -> None:
        requested = {(f.partition.topic_id, f.partition.place.partition): f for f in fetching}
        offsets = {key: f.partition.log.log_end_offset for key, f in requested.items()}
        asked = fetch_request(self._broker, self.broker_epoch, [f.partition for f in fetching], self._settings)
        self._long_poll = True
        try:
            response = await self._ask(asked)
        finally:
            self._long_poll = False
        if response["ErrorCode"]:
            raise WireError(f"fetch answered with error {response['ErrorCode']}")
        for topic in response["Responses"]:
            for answer in topic["Partitions"]:
                key = (topic["TopicId"], answer["PartitionIndex"])
                followed = requested.get(key)
                if followed is not None and self._current(followed):
                    with self._resting(followed):
                        await self._take(followed, offsets[key], answer)

    async def _take(self, followed: _Followed, offset: int, answer: Values) -> None:
        if answer["ErrorCode"] == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._out_of_range(followed)
        elif answer["ErrorCode"]:
            self._refused(followed, answer["ErrorCode"])
        else:
            self._append(followed, offset, answer["Records"])
            followed.partition.follow_high_watermark(followed.epoch, answer["HighWatermark"])

    def _append(self, followed: _Followed, offset: int, records: bytes | None) -> None:
        if not records:
            return
        place = followed.partition.place
        # It comes last in the next request, because a leader fills its response in the order of the request (KIP-74).
        self._followed[place] = self._followed.pop(place)
        if followed.partition.append_as_follower(followed.epoch, offset, records):
            self._log_end_changed(followed.partition)

    async def _out_of_range(self, followed: _Followed) -> None:
        """Continue where the leader's log has records, because it ends below our end or begins above it.

        It ends below our end after an unclean election. Then our extra records are removed. It begins above our end if
        the leader has dropped old records. Then our log restarts empty.
        """
        partition = followed.partition
        end = await self._offset_of(followed, LATEST)
        start = await self._offset_of(followed, EARLIEST)
        if end is None or start is None or not self._current(followed):
            self._rest(followed)
            return
        ours = partition.log.log_end_offset
        name = name_of(partition.place)
        logger.warning("out of the leader's range", partition=name, ours=ours, start=start, end=end)
        if end < ours:
            partition.truncate(followed.epoch, end)
        elif ours < start:
            partition.restart_at(followed.epoch, start)
        followed.truncating = True
        self._rest(followed)

    async def _offset_of(self, followed: _Followed, timestamp: int) -> int | None:
        response = await self._ask(offset_request(self._broker, followed.partition.place, followed.epoch, timestamp))
        answers = [answer for topic in response["Topics"] for answer in topic["Partitions"]]
        if len(answers) != 1:
            raise WireError(f"{len(answers)} answers to one request for an offset")
        [answer] = answers
        return None if answer["ErrorCode"] or answer["Offset"] < 0 else int(answer["Offset"])
