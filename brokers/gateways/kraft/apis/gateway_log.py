"""Serve the files of a gateway's log to another gateway, which copies them. Brokers do not request these.

The copy uses FetchSnapshot, with ids of its own for the files (``log.file_ids``). The list of all files is JSON.
"""

import msgspec

from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.log.file_ids import LIST, name_of
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values


async def piece(context: Context, body: Values, partition: Values) -> Values:
    """Return a piece of a file. Any gateway may be asked, because all files follow from the decisions."""
    wanted, position = partition["SnapshotId"], partition["Position"]
    size = min(max(body["MaxBytes"], 0), context.settings.fetch_max_bytes)
    answer = {"SnapshotId": wanted, "UnalignedRecords": b""}
    if position < 0:
        return answer | {"ErrorCode": ErrorCode.POSITION_OUT_OF_RANGE}
    if dict(wanted) == LIST:
        listed = msgspec.json.encode(await context.storage.files())
        return answer | {"Size": len(listed), "Position": 0, "UnalignedRecords": listed}
    found = context.storage.read_file(name_of(wanted), position, size)
    if found is None:
        return answer | {"ErrorCode": ErrorCode.SNAPSHOT_NOT_FOUND}
    return answer | {"Size": found.size, "Position": position, "UnalignedRecords": found.data}
