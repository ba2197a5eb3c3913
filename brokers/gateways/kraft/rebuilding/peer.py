"""Copy the log of another gateway file by file, with the record of which decisions it came from."""

import asyncio
import os
from pathlib import Path

import msgspec

from brokers.files import write_all
from brokers.gateways.kraft.log.file_ids import GATEWAY_LOG_TOPIC, LIST, id_of
from brokers.gateways.kraft.messages import CATALOGUE
from brokers.voters import Voter
from brokers.wire.connection import FrameConnection, RequestConnection
from brokers.wire.errors import ErrorCode, name_of
from brokers.wire.messages import WireError
from brokers.wire.schema import Values
from brokers.wire.security.connecting import Client, connect
from conf.whole_file import flush_directory

_KEY, _VERSION = 59, 1
_CLIENT_ID = "gateway"
_TIMEOUT_MS = 10_000
_PIECE_BYTES = 1 << 20
_FRAME_BYTES_MAX = 16 << 20
# More than a log with its snapshots ever needs; a peer that lists more is not a gateway.
_FILES_MAX, _COPY_BYTES_MAX = 1_000, 64 << 30


_PLAIN = Client()


class PeerError(Exception):
    """Another gateway does not give its log. The message names the gateway and the reason."""


async def copy(voter: Voter, cluster_id: str, into: Path, client: Client = _PLAIN) -> None:
    """Copy the log of ``voter`` into an empty directory, and force it to disk.

    Raises ``PeerError``, and ``OSError`` for errors of this disk.
    """
    try:
        async with asyncio.timeout(_TIMEOUT_MS / 1000):
            opened = await connect(voter.host, voter.port, client, _CLIENT_ID)
    except (OSError, EOFError, TimeoutError) as error:
        raise PeerError(f"gateway {voter} cannot be reached ({error or 'no answer'})") from error
    connection = FrameConnection(opened.reader, opened.writer, _FRAME_BYTES_MAX)
    try:
        line = _Line(voter, cluster_id, connection)
        for name, size in await line.files():
            await _copy_file(line, name, size, into / name)
    finally:
        connection.close()
    flush_directory(into)


async def _copy_file(line: "_Line", name: str, size: int, path: Path) -> None:
    wanted, position = id_of(name), 0
    if wanted is None:
        raise PeerError(f"gateway {line.voter} lists {name!r}, which is not a file of a log")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        while position < size:
            data = await line.piece(wanted, position, min(size - position, _PIECE_BYTES))
            if not data:
                raise PeerError(f"gateway {line.voter} sends {position} bytes of {name}, and listed {size}")
            write_all(descriptor, data)
            position += len(data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Line:
    """A connection to another gateway."""

    def __init__(self, voter: Voter, cluster_id: str, connection: FrameConnection) -> None:
        self.voter = voter
        self._cluster_id = cluster_id
        self._requests = RequestConnection(connection, CATALOGUE, _CLIENT_ID)

    async def files(self) -> list[tuple[str, int]]:
        """List the log's files at this moment, and how many bytes of each are whole."""
        listing = await self.piece(LIST, 0, _PIECE_BYTES)
        try:
            files = msgspec.json.decode(listing, type=list[tuple[str, int]])
        except msgspec.MsgspecError as error:
            raise PeerError(f"gateway {self.voter} does not list its files: {error}") from error
        if not 0 < len(files) <= _FILES_MAX or sum(size for _, size in files) > _COPY_BYTES_MAX:
            raise PeerError(f"gateway {self.voter} lists {len(files)} files, which cannot be a log")
        return files

    async def piece(self, wanted: Values, position: int, max_bytes: int) -> bytes:
        """Read a piece of a file. Raises ``PeerError``, also if the file was removed meanwhile."""
        file_partition = {"Partition": 0, "CurrentLeaderEpoch": -1, "SnapshotId": wanted, "Position": position}
        values = {
            "ClusterId": self._cluster_id,
            "MaxBytes": max_bytes,
            "Topics": [{"Name": GATEWAY_LOG_TOPIC, "Partitions": [file_partition]}],
        }
        try:
            response = await self._ask(values)
        except (OSError, TimeoutError, WireError) as error:
            raise PeerError(f"gateway {self.voter} does not answer: {error!r}") from error
        partitions = [partition for topic in response["Topics"] for partition in topic["Partitions"]]
        error_code = response["ErrorCode"] or (partitions[0]["ErrorCode"] if partitions else ErrorCode.INVALID_REQUEST)
        if error_code:
            raise PeerError(f"gateway {self.voter} refuses: {name_of(error_code)}")
        data = bytes(partitions[0]["UnalignedRecords"] or b"")
        if len(data) > max_bytes:
            raise PeerError(f"gateway {self.voter} sends {len(data)} bytes where {max_bytes} were asked for")
        return data

    async def _ask(self, values: Values) -> Values:
        return await self._requests.ask(_KEY, _VERSION, values, _TIMEOUT_MS)
