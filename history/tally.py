"""Counts of what decisions did: elections, time without a leader, records at risk, leaders per broker."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from controller_logic.replay import DecisionText
from state.cluster import State
from state.ids import NO_LEADER
from state.partition import Partition, TopicState
from state.risk import records_at_risk

_LEADER = b'{"kind":"leader_and_isr"'
_TOPIC = b'{"kind":"topic"'
_ANSWER = b'{"kind":"answer"'
_OF_LEADERS = b'"request":"alter_isr'
_OF_NEW_PARTITIONS = b'"request":"create_partitions"'

Name = tuple[str, int]


class Election(NamedTuple):
    """A change of a partition's leader. The first leader of a new partition is not counted."""

    seq: int
    time_ms: int
    topic: str
    partition: int
    # NO_LEADER: the partition lost its leader, and no replica was elected.
    leader: int
    isr: tuple[int, ...]
    reason: str
    unclean: bool
    # How many records of the ISR the leader of an unclean election is not known to have.
    records_at_risk: int


class _Result(msgspec.Struct):
    """What became of one row of a leader's request."""

    error: str


class _Told(msgspec.Struct):
    """The fields of a decision that the counts need."""

    time_ms: int
    reason: str
    topic: str | None = None
    partition: int = -1
    leader: int = NO_LEADER
    isr: tuple[int, ...] = ()
    is_new: bool = False
    unclean: bool = False
    state: str = ""
    request: str = ""
    error: str = "NONE"
    assignment: dict[str, tuple[int, ...]] | None = None
    results: tuple[_Result, ...] = ()


_told = msgspec.json.Decoder(_Told)


class Tally:
    """The counts so far."""

    def __init__(self, states: Iterable[State]) -> None:
        self.elections: list[Election] = []
        # By topic.
        self.offline_ms: Counter[str] = Counter()
        # Refused requests of leaders to change an ISR.
        self.refused = 0
        self._leaders: dict[Name, int] = {}
        self._offline_since: dict[Name, int] = {}
        self._created_ms: dict[str, int] = {}
        # When partitions were added to a topic.
        self._added_ms: dict[Name, int] = {}
        for name, partition, clock_ms in _partitions(states):
            self._leaders[name] = partition.leader
            if partition.leader == NO_LEADER:
                self._offline_since[name] = clock_ms

    def take(self, decisions: Iterable[DecisionText], before: Iterable[State]) -> None:
        """Count decisions. ``before`` has the states right before an unclean election among them, if there is one."""
        decisions = list(decisions)
        # An event's answer comes after its leaders.
        for _, _, body in decisions:
            if body.startswith(_ANSWER) and _OF_NEW_PARTITIONS in body:
                self._take_added(_told.decode(body))
        for seq, _, body in decisions:
            if body.startswith(_LEADER):
                self._take_leader(seq, _told.decode(body), before)
            elif body.startswith(_TOPIC):
                self._take_topic(_told.decode(body))
            elif body.startswith(_ANSWER) and _OF_LEADERS in body:
                self._take_refused(_told.decode(body))

    def _take_refused(self, told: _Told) -> None:
        """Count the refused rows of a request for many ISRs, or a refused request for one."""
        if told.request in ("alter_isr", "alter_isrs"):
            errors = [result.error for result in told.results] or [told.error]
            self.refused += sum(error not in ("NONE", "NEW_LEADER_ELECTED") for error in errors)

    def _take_leader(self, seq: int, told: _Told, before: Iterable[State]) -> None:
        topic = told.topic or ""
        name = (topic, told.partition)
        former = self._leaders.get(name, NO_LEADER)
        if told.leader == former and not told.is_new:
            return
        self._leaders[name] = told.leader
        if told.reason == "TOPIC_DELETED":
            self._end_offline(name, told.time_ms)
            return
        if told.leader == NO_LEADER:
            self._offline_since.setdefault(name, told.time_ms)
        elif told.is_new:
            # The partition has existed without a leader since it was created.
            self._offline_since.setdefault(name, self._since(name, told.time_ms))
            self._end_offline(name, told.time_ms)
            return
        else:
            self._end_offline(name, told.time_ms)
        risk = _records_at_risk(before, name, told.leader) if told.unclean else 0
        self.elections.append(
            Election(seq, told.time_ms, *name, told.leader, told.isr, told.reason, told.unclean, risk)
        )

    def _take_added(self, told: _Told) -> None:
        if told.error == "NONE":
            self._added_ms |= {(told.topic or "", int(number)): told.time_ms for number in told.assignment or ()}

    def _since(self, name: Name, otherwise_ms: int) -> int:
        """Return when a partition that never had a leader was created."""
        return self._added_ms.get(name, self._created_ms.get(name[0], otherwise_ms))

    def _take_topic(self, told: _Told) -> None:
        topic = told.topic or ""
        if told.state == "created":
            self._created_ms[topic] = told.time_ms
        elif told.state == "deleted":
            self._created_ms.pop(topic, None)
            self._added_ms = {name: time_ms for name, time_ms in self._added_ms.items() if name[0] != topic}
            for name in [name for name in self._leaders if name[0] == topic]:
                del self._leaders[name]
                self._end_offline(name, told.time_ms)

    def _end_offline(self, name: Name, time_ms: int) -> None:
        since = self._offline_since.pop(name, None)
        if since is not None:
            # The engine's clock can be set back by a claim.
            self.offline_ms[name[0]] += max(0, time_ms - since)

    def end(self, states: Iterable[State]) -> "TallySummary":
        """Return the counts, with the partitions as they are now."""
        partitions: dict[Name, Partition] = {}
        for name, partition, clock_ms in _partitions(states):
            partitions[name] = partition
            if partition.leader == NO_LEADER:
                self._offline_since.setdefault(name, self._since(name, clock_ms))
                self._end_offline(name, clock_ms)
        leaders = Counter(partition.leader for partition in partitions.values())
        offline = leaders.pop(NO_LEADER, 0)
        return TallySummary(self.elections, +self.offline_ms, self.refused, leaders, offline, partitions)


class TallySummary(NamedTuple):
    """The counts of what a log's decisions did."""

    elections: list[Election]
    offline_ms: Mapping[str, int]
    refused: int
    # At the end: how many partitions each broker leads, and how many have no leader.
    leaders: Mapping[int, int]
    offline: int
    partitions: Mapping[Name, Partition]


def _partitions(states: Iterable[State]) -> Iterable[tuple[Name, Partition, int]]:
    for state in states:
        for topic_name in state.topics.names():
            topic = state.topics.get(topic_name)
            if topic is not None and topic.state == TopicState.created:
                for partition in topic.partitions:
                    yield (topic_name, partition.partition), partition, state.cluster.clock_ms


def _records_at_risk(before: Iterable[State], name: Name, leader: int) -> int:
    """Return how many records a member of the ISR had reported that ``leader`` had not."""
    for state in before:
        topic = state.topics.get(name[0]) if state.cluster.holds(name[0]) else None
        if topic is not None and name[1] < len(topic.partitions):
            return records_at_risk(topic.partitions[name[1]], leader) or 0
    return 0
