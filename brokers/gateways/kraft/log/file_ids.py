"""The ids of a log's files, by which a gateway requests them from another one (``apis.metadata_fetch``).

They have the form of a snapshot's id in FetchSnapshot. A segment, or the ends file beside it, is named by the offset
at which it begins, with -2 or -3 in the field for the epoch. A snapshot is named by its end offset and epoch. -1 in
both fields stands for the list of all files.
"""

import re

from brokers.wire.schema import Values

# The name of the topic in such a request. Brokers do not know it.
GATEWAY_LOG_TOPIC = "__gateway_log"
LIST = {"EndOffset": -1, "Epoch": -1}
_LOG_EPOCH, _ENDS_EPOCH = -2, -3
_FILE = re.compile(r"([0-9]{20})(?:(\.log)|(\.ends)|-([0-9]{10})\.checkpoint)")


def id_of(name: str) -> Values | None:
    """Return the id under which a file is requested; None if it is not a file of a log."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    epoch = _LOG_EPOCH if match[2] else _ENDS_EPOCH if match[3] else int(match[4])
    return {"EndOffset": int(match[1]), "Epoch": epoch}


def name_of(file_id: Values) -> str:
    """Return the name of the file with an id."""
    base = f"{file_id['EndOffset']:020d}"
    suffixes = {_LOG_EPOCH: ".log", _ENDS_EPOCH: ".ends"}
    return base + suffixes.get(file_id["Epoch"], f"-{file_id['Epoch']:010d}.checkpoint")
