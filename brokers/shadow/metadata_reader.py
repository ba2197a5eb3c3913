"""Read the metadata log of a live cluster from its active controller, read-only and without a trace.

A log that has snapshots no longer reaches back to its beginning. Offset 0 is answered with the newest snapshot, and an
offset that the log still holds with the log. So the history begins with the oldest snapshot, whose end is the log's
start. A snapshot's name comes from fetches alone: a controller that refuses a FetchSnapshot fails to write its answer,
and logs an error. So a snapshot is asked for only on the connection over which the leader has just named it.
"""

import asyncio
from collections.abc import AsyncIterator

from brokers.shadow.controller_line import (
    DESCRIBE_CLUSTER,
    FETCH,
    FETCH_SNAPSHOT,
    HIGH_WATERMARK_VERSION,
    ControllerLine,
    Position,
    SnapshotId,
    describe_cluster_values,
    fetch_snapshot_values,
    fetch_values,
)
from brokers.shadow.decoding import decoded
from brokers.shadow.fetched_log import FetchedLog
from brokers.shadow.quorum import LOST, Quorum, RefusedReaderError
from brokers.shadow.snapshot import decoded_snapshot
from brokers.shadow.source import Gap, Read, Snapshot
from brokers.wire.errors import ErrorCode
from brokers.wire.messages import WireError
from brokers.wire.schema import Values

WAIT_MS = 500
# Before version 18 the answer to a fetch that waited in vain has the high watermark of its beginning. So a reader that
# holds batches asks again soon.
HELD_WAIT_MS = 10
# A fetch for more than may be held would be answered at once, again and again.
_FULL_PAUSE_S = 0.1
SNAPSHOT_BYTES_MAX = 512 << 20
_BEGINNING = Position(0, 0)
_RETENTION = "the controllers no longer have these records: the reader was away for longer than they are kept"


class MetadataReader:
    """Follows the log of one cluster, which it asks through ``quorum``.

    Controllers of another cluster than ``cluster_id`` refuse it.
    """

    def __init__(self, quorum: Quorum, cluster_id: str | None = None) -> None:
        self._quorum = quorum
        self._cluster_id = cluster_id
        self._log = FetchedLog(_BEGINNING)

    @property
    def next_offset(self) -> int:
        """The offset after the last record that was handed on."""
        return self._log.committed.offset

    @property
    def high_watermark(self) -> int:
        """The newest high watermark that the reader knows; -1 at first."""
        return self._log.high_watermark

    async def cluster_id(self) -> str:
        """Return the cluster's id. Controllers are asked for it if it is not known. Raises what ``follow`` raises.

        They tell it only to a principal that may alter the cluster, and reading needs less.
        """
        while self._cluster_id is None:
            line = await self._quorum.line()
            try:
                answer = await line.ask(DESCRIBE_CLUSTER, describe_cluster_values())
                code = answer["ErrorCode"]
                if code and code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                    # A controller that has just started does not know its metadata version yet, and supports nothing.
                    raise WireError(f"does not tell the cluster's id (error {code})")
            except LOST as error:
                await self._quorum.lose(line.endpoint, str(error) or type(error).__name__)
                continue
            if code:
                raise RefusedReaderError(
                    f"{line.endpoint} does not tell this principal the cluster's id: expected --cluster-id, or ALTER "
                    "on the cluster"
                )
            self._cluster_id = str(answer["ClusterId"])
        return self._cluster_id

    async def follow(self, after: Position | None = None) -> AsyncIterator[Read]:
        """Yield what is committed, and wait for more, forever.

        The oldest snapshot comes first, and all batches after it. A reader that goes on ``after`` a position, which is
        the offset after its last record and the epoch of that, gets the newest snapshot before it and all batches
        after that snapshot; so it can rebuild what it knew. If there is none, a gap comes first.

        Raises ``LogCutError`` if the log does not hold the record before ``after``, or another one that was committed.
        Raises ``NoControllerError``, ``RefusedReaderError`` or ``UnfitServerError`` if no controller can be read.
        """
        if after is not None:
            await self._check(after)
        begin = await self._begin(after)
        if begin is not None:
            if after is not None and begin.offset > after.offset:
                yield Gap(after.offset, begin.offset, _RETENTION)
            self._log.move(Position(begin.offset, begin.epoch))
            yield begin
        while True:
            line, answer = await self._fetch(WAIT_MS)
            named, diverging = _snapshot_id(answer["SnapshotId"]), _snapshot_id(answer["DivergingEpoch"])
            if diverging is not None:
                self._log.part(diverging)
            elif named is None:
                try:
                    for batch in self._log.take(answer):
                        yield decoded(batch)
                except WireError as error:
                    await self._quorum.lose(line.endpoint, str(error))
                if self._log.is_full:
                    await asyncio.sleep(_FULL_PAUSE_S)
            elif named.epoch > self._log.position.epoch:
                # In a lower epoch than the oldest snapshot's, a fetch is redirected even if the log holds the offset.
                self._log.move(Position(self.next_offset, named.epoch))
            elif (snapshot := await self._snapshot(line, named)) is not None:
                gap = Gap(self.next_offset, named.end_offset, _RETENTION)
                self._log.move(Position(*named))
                yield gap
                yield snapshot

    async def _check(self, after: Position) -> None:
        """Raise ``LogCutError`` if the log does not hold the record before ``after``, unless it begins later."""
        self._log.move(after)
        _, answer = await self._fetch(0)
        diverging = _snapshot_id(answer["DivergingEpoch"])
        if diverging is not None:
            self._log.part(diverging)

    async def _begin(self, after: Position | None) -> Snapshot | None:
        """Return the snapshot with which to begin; None if the log begins at 0.

        Without a snapshot to begin with, the position is the log's beginning.
        """
        while True:
            self._log.move(_BEGINNING)
            line, answer = await self._fetch(0)
            named = newest = _snapshot_id(answer["SnapshotId"])
            if newest is None:
                return None
            if after is None or newest.end_offset > after.offset:
                self._log.move(Position(*newest))
                line, answer = await self._fetch(0)
                start = answer["LogStartOffset"]
                if start == 0:
                    # Offset 0 only says who led first, and a fetch from there is redirected.
                    self._log.move(Position(1, newest.epoch))
                    return None
                if start != newest.end_offset:
                    line, named = await self._oldest(start, newest)
            if named is not None and (snapshot := await self._snapshot(line, named)) is not None:
                return snapshot

    async def _oldest(self, start: int, newest: SnapshotId) -> tuple[ControllerLine, SnapshotId | None]:
        """Find the epoch of the snapshot that ends where the log starts; None if it is removed meanwhile.

        After the start, a fetch in a lower epoch is redirected to the newest snapshot.
        """
        low, high = 0, newest.epoch
        while low < high:
            epoch = (low + high) // 2
            self._log.move(Position(start + 1, epoch))
            _, answer = await self._fetch(0)
            low, high = (low, epoch) if _snapshot_id(answer["SnapshotId"]) is None else (epoch + 1, high)
        # At the start, a fetch is redirected in every epoch but that of the snapshot.
        self._log.move(Position(start, low))
        line, answer = await self._fetch(0)
        return line, SnapshotId(start, low) if _snapshot_id(answer["SnapshotId"]) is None else None

    async def _fetch(self, wait_ms: int) -> tuple[ControllerLine, Values]:
        """Fetch from the position on. Return the active controller's answer, and the connection to it."""
        while True:
            line = await self._quorum.line()
            version = line.version(FETCH)
            carries = version >= HIGH_WATERMARK_VERSION
            wait_ms = HELD_WAIT_MS if self._log.holds and not carries else wait_ms
            high_watermark = self._log.high_watermark if carries else None
            values = fetch_values(self._cluster_id, self._log.position, self._quorum.epoch, high_watermark, wait_ms)
            try:
                response = await line.ask(FETCH, values, wait_ms)
                answer = _partition(response, "Responses")
            except LOST as error:
                await self._quorum.lose(line.endpoint, str(error) or type(error).__name__)
                continue
            if code := response["ErrorCode"] or answer["ErrorCode"]:
                await self._quorum.turn(line, code, answer, response["NodeEndpoints"])
                continue
            self._quorum.serves(line)
            self._quorum.leader_id = answer["CurrentLeader"]["LeaderId"]
            return line, answer

    async def _snapshot(self, line: ControllerLine, named: SnapshotId) -> Snapshot | None:
        """Fetch a snapshot over the connection on which it was named; None if that controller stops serving it."""
        data = bytearray()
        try:
            while True:
                values = fetch_snapshot_values(self._cluster_id, named, self._quorum.epoch, len(data))
                response = await line.ask(FETCH_SNAPSHOT, values)
                answer = _partition(response, "Topics")
                if code := response["ErrorCode"] or answer["ErrorCode"]:
                    raise WireError(f"the request for a snapshot is answered with error {code}")
                piece, size = answer["UnalignedRecords"], answer["Size"]
                if not piece or answer["Position"] != len(data) or size > SNAPSHOT_BYTES_MAX:
                    raise WireError(f"{len(piece)} bytes at {len(data)} of a snapshot of {size} bytes")
                data += piece
                if len(data) >= size:
                    self._quorum.serves(line)
                    return decoded_snapshot(named.end_offset, named.epoch, data)
        except LOST as error:
            await self._quorum.lose(line.endpoint, f"snapshot {named}: {error or type(error).__name__}")
            return None


def _partition(response: Values, field: str) -> Values:
    """Return what an answer says about the one partition. An answer without it has nothing but an error."""
    parts = [partition for topic in response[field] for partition in topic["Partitions"]]
    if len(parts) == 1:
        return dict(parts[0])
    if response["ErrorCode"]:
        return {"ErrorCode": 0, "CurrentLeader": {"LeaderId": -1, "LeaderEpoch": -1}}
    raise WireError(f"an answer about {len(parts)} partitions")


def _snapshot_id(told: Values) -> SnapshotId | None:
    return SnapshotId(told["EndOffset"], told["Epoch"]) if told["Epoch"] >= 0 else None
