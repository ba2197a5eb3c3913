"""What the loss of brokers would do, for ``isrflow whatif --kill``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cli.errors import WrongUse
from cli.output import columns, ids
from conf.counted import counted
from history.killed import EFFECTS, OFFLINE, UNCLEAN, Hit, Killed
from state.broker import Broker
from state.ids import NO_LEADER, broker_named

# The most partitions that people are shown.
SHOWN_MAX = 20
_RACK = "rack:"
_HEAD = ("Topic", "Partition", "Effect", "Leader", "NewLeader", "Isr", "NewIsr", "MinIsr")


def lost_brokers(brokers: Mapping[int, Broker], names: Sequence[str]) -> tuple[int, ...]:
    """Return the brokers that are named by their ids or racks. Raises ``WrongUse`` for an unknown one."""
    lost: set[int] = set()
    for name in names:
        number = broker_named(name)
        if name.startswith(_RACK):
            some = {one.broker for one in brokers.values() if one.rack == name.removeprefix(_RACK)}
        else:
            some = {number} & set(brokers) if number is not None else set()
        if not some:
            racks = sorted({one.rack for one in brokers.values() if one.rack is not None})
            known = [*map(str, sorted(brokers)), *(f"{_RACK}{rack}" for rack in racks)]
            raise WrongUse(f"--kill {name}: expected a registered broker or rack, one of {', '.join(known) or 'none'}.")
        lost |= some
    return tuple(sorted(lost))


def document_of(killed: Killed, lost: tuple[int, ...], seq: int, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Return the effects as JSON shows them."""
    hits = killed.hits
    counts = Counter(hit.effect for hit in hits)
    return {
        "seq": seq,
        "lost": lost,
        "set": overrides,
        "counts": {effect: counts[effect] for effect in EFFECTS},
        "records_on_one_disk": killed.records_on_one_disk,
        "records_at_risk": killed.records_at_risk,
        "new_leaders": {str(leader): count for leader, count in _new_leaders(hits)},
        "partitions": [hit._asdict() for hit in hits],
    }


def text_of(killed: Killed, lost: tuple[int, ...], seq: int, overrides: Mapping[str, str]) -> list[str]:
    """Return the effects as lines for people, with the worst partitions."""
    hits = killed.hits
    settings = "".join(f", {key}={value}" for key, value in overrides.items())
    who = f"broker{'' if len(lost) == 1 else 's'} {ids(lost)}"
    lines = [f"What if {who} were lost{settings}, as of seq {seq}:"]
    if not hits:
        return [*lines, "  every partition keeps its leader and accepts writes.", *_records(killed)]
    counts = Counter(hit.effect for hit in hits)
    lines += [f"  {effect}: {counted(counts[effect], 'partition')}" for effect in EFFECTS if counts[effect]]
    lines += [f"  broker {leader} leads {count} more" for leader, count in _new_leaders(hits)]
    lines += _records(killed)
    lines += ["", *columns(_HEAD, map(_row, hits[:SHOWN_MAX]))]
    if left := len(hits) - SHOWN_MAX:
        lines += ["", f"{counted(left, 'more partition')}; --format json shows all."] if left > 0 else []
    return lines


def _records(killed: Killed) -> list[str]:
    if killed.records_on_one_disk is None:
        return ["  acknowledged records left on one disk: not known, because log ends are not reported"]
    lines = [f"  acknowledged records left on one disk: {killed.records_on_one_disk:,}"]
    if any(hit.effect == UNCLEAN for hit in killed.hits):
        at_risk = "not known" if killed.records_at_risk is None else f"{killed.records_at_risk:,}"
        lines.append(f"  records that unclean elections may lose: {at_risk}")
    return lines


def _new_leaders(hits: Sequence[Hit]) -> list[tuple[int, int]]:
    return sorted(Counter(hit.leader for hit in hits if hit.leader not in (hit.leader_before, NO_LEADER)).items())


def _row(hit: Hit) -> tuple[object, ...]:
    leader = "none" if hit.effect == OFFLINE else hit.leader
    where = (hit.topic, hit.partition, hit.effect, hit.leader_before, leader)
    return (*where, ids(hit.isr_before), ids(hit.isr), hit.min_isr)
