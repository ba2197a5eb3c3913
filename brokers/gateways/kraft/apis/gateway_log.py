"""Serve the files of a gateway's log to another gateway, which copies them. Brokers do not request these.

The copy uses FetchSnapshot with a topic that brokers do not know. A segment, or the ends file beside it, is named by
the offset at which it begins, with -2 or -3 in the field for the epoch. A snapshot is named by its end offset and
epoch. The list of all files is requested with -1 in both fields, and is JSON.
"""

import re

import msgspec

from brokers.gateways.kraft.context import Context
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values

GATEWAY_LOG_TOPIC = "__gateway_log"
LIST = {"EndOffset": -1, "Epoch": -1}
_LOG_EPOCH, _ENDS_EPOCH = -2, -3
_FILE = re.compile(r"([0-9]{20})(?:(\.log)|(\.ends)|-([0-9]{10})\.checkpoint)")


def id_of(name: str) -> Values | None:
    """Return the snapshot id under which a file is requested; None if it is not a file of a log."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    epoch = _LOG_EPOCH if match[2] else _ENDS_EPOCH if match[3] else int(match[4])
    return {"EndOffset": int(match[1]), "Epoch": epoch}


def _name_of(partition: Values) -> str:
    base = f"{partition['EndOffset']:020d}"
    suffixes = {_LOG_EPOCH: ".log", _ENDS_EPOCH: ".ends"}
    return base + suffixes.get(partition["Epoch"], f"-{partition['Epoch']:010d}.checkpoint")


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
    found = context.storage.read_file(_name_of(wanted), position, size)
    if found is None:
        return answer | {"ErrorCode": ErrorCode.SNAPSHOT_NOT_FOUND}
    return answer | {"Size": found.size, "Position": position, "UnalignedRecords": found.data}
