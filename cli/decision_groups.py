"""What each event led to, in one line; ``isrflow decisions --from SEQ`` opens it.

broker 12 fenced  (BROKER_SESSION_EXPIRED): 2000 leaders moved, 2500 ISRs shrank
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from bus.interface import Decided
from cli.decision_line import reasoned
from conf.counted import counted
from history.explanation import shown_time
from state.decisions import AnyDecision, HighWatermark, LeaderAndIsr, StopReplica
from state.ids import NO_LEADER
from state.reason import Reason

_R = Reason
_MOVED = frozenset(
    {
        *(_R.LEADER_FENCED, _R.LEADER_RETURNED, _R.ELIGIBLE_ELECTION),
        *(_R.PREFERRED_ELECTION, _R.LEADER_BALANCE, _R.CONTROLLED_SHUTDOWN),
    }
)
_BY_REASON = {
    **dict.fromkeys(_MOVED, ("leader moved", "leaders moved")),
    **dict.fromkeys((_R.REPLICA_FENCED, _R.ISR_SHRUNK), ("ISR shrank", "ISRs shrank")),
    _R.ISR_EXPANDED: ("ISR grew", "ISRs grew"),
    **dict.fromkeys((_R.TOPIC_CREATED, _R.PARTITIONS_CREATED), ("partition created", "partitions created")),
    _R.TOPIC_DELETED: ("partition deleted", "partitions deleted"),
}


def grouped(decisions: Iterable[AnyDecision]) -> Iterator[list[AnyDecision]]:
    """Yield the decisions on each event."""
    for _, group in groupby(decisions, key=attrgetter("seq")):
        yield list(group)


def whole_events(batches: Iterable[list[Decided]]) -> Iterator[list[Decided]]:
    """Cut batches so that all decisions on an event are in one. The last event is complete when nothing more comes."""
    held: list[Decided] = []
    for batch in batches:
        if not batch or (held and held[-1].seq != batch[0].seq):
            yield held
            held = []
        held += batch
    yield held


def group_line(group: list[AnyDecision]) -> str:
    """Tell the decisions on one event in one line, with the time by the engine's clock.

    Decisions about partitions are counted, and the others are told.
    """
    counts = Counter(what for what in map(_counted_as, group) if what)
    told = [reasoned(decision) for decision in group if _counted_as(decision) is None]
    done = ", ".join(counted(number, *what) for what, number in counts.items())
    head = "; ".join(told)
    return f"{group[0].seq:>6}  {shown_time(group[0].time_ms)}  {': '.join(filter(None, (head, done)))}"


def _counted_as(decision: AnyDecision) -> tuple[str, str] | None:
    """Return the words under which a decision about a partition is counted; None for any other decision."""
    match decision:
        case LeaderAndIsr():
            if decision.unclean:
                return "unclean election", "unclean elections"
            if decision.leader == NO_LEADER and decision.reason is not Reason.TOPIC_DELETED:
                return "partition without a leader", "partitions without a leader"
            other = f"changed ({decision.reason})"
            return _BY_REASON.get(decision.reason, (f"partition {other}", f"partitions {other}"))
        case StopReplica():
            return "replica stopped", "replicas stopped"
        case HighWatermark():
            return "high watermark", "high watermarks"
    return None
