"""The part of a decision that the page reads."""

from collections.abc import Iterable, Iterator

import msgspec

from bus.interface import Decided
from state.reason import Reason
from state.secrets import without_secrets

# These are too many to list. Numbers elsewhere on the page show what they did.
_UNSEEN = ("high_watermark", "no_op", "imbalance", "producer_ids")
# How the JSON of such a decision begins, so that it need not be decoded.
_UNREAD = tuple(f'{{"kind":"{kind}"'.encode() for kind in _UNSEEN)
TEXT_MAX = 200
ELECTION, ISR, BROKER, OTHER = "elections", "isr", "brokers", "other"
UNCLEAN, VIOLATION, DIVERGENCE = "unclean", "violations", "divergences"
# Worst first.
LANES = (UNCLEAN, VIOLATION, ELECTION, ISR, BROKER, DIVERGENCE, OTHER)
_LANES_OF_KINDS = {"broker": BROKER, "violation": VIOLATION, "divergence": DIVERGENCE}
_ELECTIONS = frozenset(
    {
        *(Reason.LEADER_FENCED, Reason.LEADER_RETURNED, Reason.ELIGIBLE_ELECTION, Reason.UNCLEAN_ELECTION),
        *(Reason.PREFERRED_ELECTION, Reason.LEADER_BALANCE, Reason.CONTROLLED_SHUTDOWN, Reason.LOG_ELECTION),
    }
)
_ISR_CHANGES = frozenset(
    {Reason.ISR_SHRUNK, Reason.ISR_EXPANDED, Reason.ISR_ALTERED, Reason.REPLICA_FENCED, Reason.REPLICA_ONLINE}
)


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision as the page shows it. Fields that its kind does not have are left out."""

    kind: str
    seq: int
    index: int
    time_ms: int
    reason: str
    controller_epoch: int = 0
    topic: str = ""
    partition: int = -1
    leader: int | None = None
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    unclean: bool = False
    broker: int | None = None
    state: str = ""
    entity: str = ""
    name: str | None = None
    # Of a metadata entity. Its values are not shown, because some are secret.
    entity_type: str = ""
    names: dict[str, str | None] = {}
    voter: int | None = None
    request: str = ""
    error: str = ""
    field: str = ""
    message: str = ""
    # Who asked for it; empty if no request did, or if that is not known.
    principal: str = ""
    # Of a divergence.
    observed: int | tuple[int, ...] | None = None
    predicted: int | tuple[int, ...] | None = None
    delete: bool = False
    to: tuple[int, ...] = ()
    # The lane of the time line that counts it. Decisions have no such field: it is derived here, and sent to the page.
    lane: str = ""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "lane", _lane_of(self))


def _lane_of(one: Seen) -> str:
    if one.unclean:
        return UNCLEAN
    if one.kind == "leader_and_isr":
        return ELECTION if one.reason in _ELECTIONS else ISR if one.reason in _ISR_CHANGES else OTHER
    return _LANES_OF_KINDS.get(one.kind, OTHER)


_decode = msgspec.json.Decoder(Seen).decode


def seen(decisions: Iterable[Decided]) -> Iterator[tuple[Seen, bytes]]:
    """Yield decisions for the page, without those that are too many to list and answers to requests that were done."""
    for decided in decisions:
        body = decided.body
        if body.startswith(_UNREAD):
            continue
        one = _decode(body)
        if one.kind in _UNSEEN or (one.kind == "answer" and one.error == "NONE"):
            continue
        if len(one.message) > TEXT_MAX:
            one = msgspec.structs.replace(one, message=one.message[:TEXT_MAX] + "…")
        yield one, without_secrets(body)
