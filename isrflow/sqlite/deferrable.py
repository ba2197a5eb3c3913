"""Which events are deferrable: they start no batch by themselves.

These are offsets, which take effect only at the next tick, and heartbeats, unless their sender waits for an answer or
they say more than that a broker lives.
The table's column for this is ``patient``.
"""

import msgspec

from isrflow.contract import HEARTBEATS, LOG_END_REPORTS

Row = tuple[str | None, bool, bytes]


class _Header(msgspec.Struct):
    kind: str | None = None
    request_id: str | None = None
    want_fence: bool = False
    want_shutdown: bool = False
    offline_log_dirs: list[object] = []
    cordoned_log_dirs: list[object] | None = None


_header = msgspec.json.Decoder(_Header)


def row_of(raw: bytes) -> Row:
    """Return an event's row: its kind, whether it is deferrable (``EmbeddedBus.batch_end``), and its text."""
    try:
        header = _header.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, False, raw
    says_more = (
        header.request_id is not None
        or header.want_fence
        or header.want_shutdown
        or header.offline_log_dirs
        or header.cordoned_log_dirs is not None
    )
    waits = header.kind in LOG_END_REPORTS or (header.kind in HEARTBEATS and not says_more)
    return header.kind, bool(waits), raw
