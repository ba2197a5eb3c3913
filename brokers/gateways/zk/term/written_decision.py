"""The newest decision that ZooKeeper holds, noted there so that an old bus is not taken for the present one.

A bus that was put back from a backup has the same number as before, and lacks what was decided since. To its gateway,
each topic that was created since would look like a deleted one. So every transaction notes the newest decision that it
follows from, in the znode whose version it raises anyway (``Session``). A term begins, and a cluster is handed back,
only from a bus that has this decision.

    nothing noted, or of another bus    leads, unless ``bus_note`` refuses
    the bus has the decision            leads
    retention has removed it            leads, because a bus whose retention is past it is newer
    the bus ends before it, or has      is refused
    another decision there
"""

import msgspec

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.term.bus_note import OtherBusError
from bus.interface import AFTER_ALL_OF, Bus, TrimmedError
from state.decisions import AnyDecision, decode

_GROWTH = 8
_AT_ONCE = 1_000


class _Written(msgspec.Struct):
    bus: int
    seq: int
    controller_epoch: int
    # The time of the decision's event. Two histories have different events at the same seq, so their times differ.
    time_ms: int


def text_of(bus_id: int, decision: AnyDecision) -> bytes:
    """Write the note of a decision."""
    return msgspec.json.encode(_written_from(bus_id, decision))


def newest_decision(bus: Bus, through: int) -> AnyDecision | None:
    """Return a decision on the newest event up to ``through`` that led to any; None if there is none, or no longer.

    A term that begins with a state writes what follows from it, so it notes this decision until it hears of a later
    one. A bus can only be read forwards, so ever longer stretches before ``through`` are read. Raises ``BusError``.
    """
    events = 1
    while True:
        begin, found = max(0, through - events), None
        after = (begin, AFTER_ALL_OF)
        while read := [one for one in bus.decisions(after, _AT_ONCE, passing_over=True) if one.seq <= through]:
            found = read[-1]
            after = (found.seq, AFTER_ALL_OF)
        if found is not None or begin == 0:
            return None if found is None else decode(found.body)
        events *= _GROWTH


def noted_in(session: Session) -> bytes:
    """Return the note in ZooKeeper, which may be empty. Raises ``ZookeeperError``."""
    held = session.read(znodes.WRITES)
    return b"" if held is None else held[0]


def check_has_written(bus: Bus, note: bytes) -> None:
    """Check that a bus has the decision of a note, if the note is of this bus.

    Raises ``OtherBusError`` if it has not, and ``BusError`` or ``ZnodeError``.
    """
    if not note:
        return
    written, bus_id = znodes.read(znodes.WRITES, note, _Written), bus.bus_id()
    if written.bus != bus_id:
        # ``bus_note`` decides whether this bus may lead.
        return
    try:
        found = [_written_from(bus_id, decode(one.body)) for one in bus.decisions((written.seq, -1), 1)]
    except TrimmedError:
        return
    if found != [written]:
        raise OtherBusError(
            f"ZooKeeper holds decisions up to event {written.seq} of controller epoch {written.controller_epoch}"
            f" ({znodes.WRITES}), and bus {bus_id} does not have them: was it put back from a backup? Use the bus that"
            f" has them. If it is lost, remove {znodes.CONTROLLER}, so that a broker becomes the controller, and take"
            " the cluster over onto an empty bus with --adopt"
        )


def _written_from(bus_id: int, decision: AnyDecision) -> _Written:
    return _Written(bus_id, decision.seq, decision.controller_epoch, decision.time_ms)
