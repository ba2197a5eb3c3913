"""The differences between what was decided and what would have been decided."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from history.tally import Election, Name, TallySummary
from history.told_events import led_by
from state.ids import NO_LEADER
from state.partition import Partition


class Difference(NamedTuple):
    """An event at which a partition's elections differ. An empty list says that there was none."""

    seq: int
    topic: str
    partition: int
    was: list[Election]
    would: list[Election]


class Comparison(NamedTuple):
    """The same events, decided as they were and with changes."""

    was: TallySummary
    would: TallySummary

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.elections() and not self.partitions() and self.was.offline_ms == self.would.offline_ms

    def elections(self) -> list[Difference]:
        """List the events at which a partition's elections differ."""
        was, would = _by_event(self.was.elections), _by_event(self.would.elections)
        found = [Difference(*key, was.get(key, []), would.get(key, [])) for key in sorted(was.keys() | would.keys())]
        return [one for one in found if [*map(_outcome, one.was)] != [*map(_outcome, one.would)]]

    def partitions(self) -> list[tuple[Name, Partition | None, Partition | None]]:
        """List the partitions whose leader or ISR differs at the end. None: the partition does not exist."""
        was, would = self.was.partitions, self.would.partitions
        names = sorted(was.keys() | would.keys())
        pairs = ((name, was.get(name), would.get(name)) for name in names)
        return [(name, one, other) for name, one, other in pairs if _compared(one) != _compared(other)]

    def offline_ms(self) -> list[tuple[str, int, int]]:
        """List how long the partitions of each topic had no leader in all, both ways."""
        was, would = self.was.offline_ms, self.would.offline_ms
        return [(topic, was.get(topic, 0), would.get(topic, 0)) for topic in sorted(was.keys() | would.keys())]

    def leaders(self) -> list[tuple[int, int, int]]:
        was, would = self.was.leaders, self.would.leaders
        return [(broker, was.get(broker, 0), would.get(broker, 0)) for broker in sorted(was.keys() | would.keys())]

    def totals(self) -> dict[str, tuple[float, float]]:
        was, would = _totals(self.was), _totals(self.would)
        return {name: (was[name], would[name]) for name in was}


def _totals(summary: TallySummary) -> dict[str, float]:
    return {
        "elections": sum(one.leader != NO_LEADER for one in summary.elections),
        "unclean_elections": sum(one.unclean for one in summary.elections),
        "minutes_offline": minutes(sum(summary.offline_ms.values())),
        "records_at_risk": sum(one.records_at_risk for one in summary.elections),
        "offline_at_the_end": summary.offline,
        "refused_isr_changes": summary.refused,
    }


def minutes(ms: int) -> float:
    return round(ms / 60_000, 3)


def _by_event(elections: Iterable[Election]) -> dict[tuple[int, str, int], list[Election]]:
    found: dict[tuple[int, str, int], list[Election]] = {}
    for one in elections:
        found.setdefault((one.seq, one.topic, one.partition), []).append(one)
    return found


def _outcome(election: Election) -> tuple[object, ...]:
    return election.leader, election.isr, election.unclean


def _compared(partition: Partition | None) -> tuple[object, ...] | None:
    return None if partition is None else (partition.leader, partition.isr, partition.leader_recovery_state)


def json_of(comparison: Comparison, what: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison as a JSON object; ``what`` describes the changes."""
    return {
        **what,
        "is_same": comparison.is_same,
        "totals": {name: {"was": was, "would": would} for name, (was, would) in comparison.totals().items()},
        "elections": [
            {
                "seq": one.seq,
                "topic": one.topic,
                "partition": one.partition,
                "was": [_election(each) for each in one.was],
                "would": [_election(each) for each in one.would],
            }
            for one in comparison.elections()
        ],
        "minutes_offline": {
            topic: {"was": minutes(was), "would": minutes(would)} for topic, was, would in comparison.offline_ms()
        },
        "leaders": {str(broker): {"was": was, "would": would} for broker, was, would in comparison.leaders()},
        "partitions": [
            {"topic": name[0], "partition": name[1], "was": _partition(was), "would": _partition(would)}
            for name, was, would in comparison.partitions()
        ],
    }


def _election(election: Election) -> dict[str, Any]:
    return {name: getattr(election, name) for name in Election._fields if name not in ("seq", "topic", "partition")}


def _partition(partition: Partition | None) -> dict[str, Any] | None:
    if partition is None:
        return None
    return {"leader": partition.leader, "isr": partition.isr, "recovery": partition.leader_recovery_state.name}


def leadership_in_words(partition: Partition | None) -> str:
    """Return a partition's leader and ISR, in words."""
    if partition is None:
        return "no such partition"
    return f"{led_by(partition.leader)}, ISR {','.join(map(str, partition.isr)) or 'none'}"
