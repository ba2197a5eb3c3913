"""Which events are deferrable: they start no batch of the embedded bus by themselves.

These are heartbeats and offsets, which take effect only at the next tick. The table's column for this is ``patient``.
"""

import msgspec

from isrflow.contract import HEARTBEATS, LOG_END_OFFSET

Row = tuple[str | None, bool, bytes]


class _Header(msgspec.Struct):
    kind: str | None = None
    want_shutdown: bool = False


_header = msgspec.json.Decoder(_Header)


def row_of(raw: bytes) -> Row:
    """Return an event's row: its kind, whether it is deferrable (``EmbeddedBus.batch_end``), and its text."""
    try:
        header = _header.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, False, raw
    is_deferrable = header.kind == LOG_END_OFFSET or (header.kind in HEARTBEATS and not header.want_shutdown)
    return header.kind, is_deferrable, raw
