"""The decisions on one event that are about one partition.

One event may lead to 100,000 decisions. They are in canonical order, so bisection finds the few about a partition.
"""

from bisect import bisect_left
from collections.abc import Iterator

from msgspec import UNSET

from bus.interface import Bus
from state import decisions as d
from state.divergence import FIELDS, INVARIANTS
from state.part import Place, place_of

# If an event led to fewer decisions than this, all of them are read.
FEW = 200
# At most this many of the brokers that one event changed are returned.
BROKERS_MAX = 20
_END = (2**62, 2**62, "", 0, 0)


def decisions_about(bus: Bus, topic: str, partition: int, seq: int) -> list[d.AnyDecision]:
    """Return the decisions on the event ``seq`` that changed a partition or refused a change, in order.

    With them come the decisions about brokers that the same event led to, because they are often the cause.
    """
    first = [d.decode(one.body) for one in bus.decisions((seq, -1), FEW, passing_over=True) if one.seq == seq]
    found = first if len(first) < FEW else list(_among_many(_Decisions(bus, seq), topic, partition))
    about = [one for one in found if _is_about(one, topic, partition)]
    if any(isinstance(one, d.LeaderAndIsr | d.StopReplica) for one in about):
        brokers = [one for one in found if isinstance(one, d.BrokerDecision)]
        return brokers[:BROKERS_MAX] + about
    return about


def _is_about(decision: d.AnyDecision, topic: str, partition: int) -> bool:
    match decision:
        case d.LeaderAndIsr() | d.StopReplica() | d.Rejected() | d.Divergence() | d.Violation():
            return (decision.topic, decision.partition) == (topic, partition)
        case d.TopicDecision():
            return decision.topic == topic
        case d.ConfigDecision():
            return (decision.entity, decision.name) == ("topic", topic)
        case d.Answer():
            return decision.error != "NONE" and _is_answer_about(decision, topic, partition)
    return False


def _is_answer_about(answer: d.Answer, topic: str, partition: int) -> bool:
    results = () if answer.results is UNSET else answer.results
    if any((one.topic, one.partition) == (topic, partition) and one.error != "NONE" for one in results):
        return True
    return answer.topic == topic and answer.partition in (UNSET, partition)


def _among_many(decisions: "_Decisions", topic: str, partition: int) -> Iterator[d.AnyDecision]:
    wanted = [
        ("leader_and_isr", topic, partition, 1),
        ("stop_replica", topic, partition, 1),
        ("topic", topic, -1, 1),
        ("broker", "", -1, BROKERS_MAX),
        ("answer", "", -1, 1),
        ("config", f"topic {topic}", -1, 1),
        ("rejected", topic, partition, 2),
        ("divergence", topic, partition, len(FIELDS)),
        ("violation", topic, partition, len(INVARIANTS)),
    ]
    for kind, name, number, count in wanted:
        rank = d.KIND_RANK[kind]
        index = decisions.first_at((decisions.seq, rank, name, number, -1))
        for _ in range(count):
            decision = decisions.at(index)
            if decision is None or place_of(decision)[1:4] != (rank, name, number):
                break
            yield decision
            index = decision.index + 1


class _Decisions:
    """The decisions on one event, each read when it is asked for."""

    def __init__(self, bus: Bus, seq: int) -> None:
        self._bus = bus
        self.seq = seq
        self._held: dict[int, d.AnyDecision | None] = {}
        self._count = FEW
        while self.at(self._count) is not None:
            self._count *= 2

    def at(self, index: int) -> d.AnyDecision | None:
        """Return the decision with this index, or the next one that retention has left; None after the last one."""
        if index not in self._held:
            found = self._bus.decisions((self.seq, index - 1), 1, passing_over=True)
            is_there = bool(found) and found[0].seq == self.seq
            self._held[index] = d.decode(found[0].body) if is_there else None
        return self._held[index]

    def first_at(self, place: Place) -> int:
        """Return the index of the first decision that is not before ``place``."""
        return bisect_left(range(self._count), place, key=self._place)

    def _place(self, index: int) -> Place:
        decision = self.at(index)
        return _END if decision is None else place_of(decision)
