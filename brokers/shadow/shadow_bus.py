"""The bus of a shadow: it has the observations of one cluster, and nothing else."""

import msgspec

from bus.image import read_image
from bus.interface import Bus
from isrflow.contract import ENGINE_KINDS

READ_MAX = 1_000
_KIND = "observed"


class _Kind(msgspec.Struct):
    kind: str = ""


class _Resume(msgspec.Struct):
    cluster_id: str
    offset: int
    last_offset: int
    epoch: int
    part: int = 0
    parts: int = 1


_kind = msgspec.json.Decoder(_Kind)
_resume = msgspec.json.Decoder(_Resume)


class ForeignBusError(Exception):
    """A bus belongs to a cluster that is led on it, or is the shadow of another one. The message says of which."""


class Observation(msgspec.Struct, frozen=True):
    """The newest operation of which a bus has all parts."""

    # Of its last record.
    last_offset: int
    # Of the batch in the metadata log; -1 if only the state tells of the operation.
    epoch: int


def newest_observation(bus: Bus, cluster_id: str) -> Observation | None:
    """Return the newest operation on the bus; None if nothing was observed yet.

    Raises ``ForeignBusError`` if the bus is neither new nor the shadow of the cluster. Raises ``BusError``.
    """
    through, has_others = bus.last_seq(), False
    while through > 0:
        after = max(through - READ_MAX, 0)
        for entry in reversed(bus.recorded(after, through, READ_MAX, 1 << 40)):
            kind = _kind_of(entry.raw)
            if kind == _KIND:
                found = _resume.decode(entry.raw)
                if found.cluster_id != cluster_id:
                    raise ForeignBusError(f"it is the shadow of cluster {found.cluster_id}, and not of {cluster_id}")
                if found.part + 1 == found.parts:
                    return Observation(found.last_offset, found.epoch)
            elif kind not in ENGINE_KINDS and not has_others:
                has_others = True
        through = after
    shadow = read_image(bus.image()).cluster.shadow
    if shadow is not None and shadow.cluster_id == cluster_id and shadow.is_complete:
        return Observation(shadow.last_offset, -1)
    if shadow is not None or has_others:
        owner = f"the shadow of cluster {shadow.cluster_id}" if shadow else "the bus of a cluster that is led on it"
        raise ForeignBusError(f"it is {owner}: expected a new bus, or the shadow of cluster {cluster_id}")
    return None


def _kind_of(raw: bytes) -> str:
    try:
        return _kind.decode(raw).kind
    except msgspec.MsgspecError:
        return ""
