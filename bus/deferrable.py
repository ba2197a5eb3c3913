"""Which events are patient: by themselves they start no batch of the embedded bus."""

import msgspec

_HEARTBEATS = ("broker_heartbeat", "gateway_heartbeat")


Row = tuple[str | None, bool, bytes]


class _Sort(msgspec.Struct):
    kind: str | None = None
    want_shutdown: bool = False


_sort = msgspec.json.Decoder(_Sort)


def row_of(raw: bytes) -> Row:
    """Make an event's row: its kind, and whether it is patient (``EmbeddedBus.batch_end``)."""
    try:
        sort = _sort.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, False, raw
    patient = sort.kind == "log_end_offset" or (sort.kind in _HEARTBEATS and not sort.want_shutdown)
    return sort.kind, patient, raw
