"""Place replicas on brokers (Kafka's ``AdminUtils.assignReplicasToBrokers``, KIP-36).

Kafka draws a start and a shift at random. Here both come from the topic's id, so a replay places replicas as before.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# The rack of each broker; None if it has none.
Racks = Mapping[int, str | None]


class Start(NamedTuple):
    """Where placement begins."""

    # The first leader's place among the brokers.
    first: int
    # The first follower's distance from its leader.
    shift: int


def start_of(topic_id: str) -> Start:
    """Derive where a topic's placement begins, so that topics spread over the brokers."""
    drawn = zlib.crc32(topic_id.encode())
    return Start(drawn & 0xFFFF, drawn >> 16)


def place(
    racks: Racks, partitions: int, replication_factor: int, start: Start, first_partition: int = 0
) -> list[tuple[int, ...]]:
    """Return the replicas of ``partitions`` new partitions, the preferred leader first.

    ``racks`` names the usable brokers, at least ``replication_factor`` of them. Leaders go round the brokers, and
    followers are shifted one further each round. If every broker has a rack, a partition uses each rack before it
    uses one twice. If any broker has none, racks do not count (Kafka's ``RackAwareMode.Safe``).
    """
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    is_aware = len(known) == len(racks)
    brokers = _racks_in_turn(known) if is_aware else sorted(racks)
    shift, placed = start.shift, []
    # After as many shifts as there are other brokers, followers are in the same places again.
    rounds = max(1, len(brokers) - 1)
    known_places: dict[tuple[int, int], tuple[int, ...]] = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start.first) % len(brokers)
        found = known_places.get((first, shift % rounds))
        if found is None:
            if is_aware:
                found = _spread(brokers, known, first, shift, replication_factor)
            else:
                follow = range(replication_factor - 1)
                found = (brokers[first], *(brokers[_place(first, shift, j, len(brokers))] for j in follow))
            known_places[first, shift % rounds] = found
        placed.append(found)
    return placed


def place_registered(
    active: Racks,
    fenced: Racks,
    partitions: int,
    replication_factor: int,
    start: Start,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """Do what ``place`` does with registered brokers, of which at least one is active.

    A partition gets fenced brokers only where active ones are too few, and after these: in all, or of racks if every
    broker has one (``StripedReplicaPlacer``).
    """
    dark = _dark(active, fenced)
    dark_racks, lit_racks = len(set(dark.values())), len(set(active.values()))
    # At most one of each rack without an active broker, as long as racks with one are too few.
    from_dark = min(dark_racks, max(0, replication_factor - lit_racks))
    from_active = min(replication_factor - from_dark, len(active))
    placed = place(active, partitions, from_active, start, first_partition)
    if from_active == replication_factor:
        return placed
    turn = start.first + first_partition
    in_turn, others = _racks_in_turn(dark) if dark else [], sorted(fenced)
    return [
        (*replicas, *_fenced_for(turn + nth, in_turn, others, dark_racks)[: replication_factor - from_active])
        for nth, replicas in enumerate(placed)
    ]


def with_rack_of_the_others(active: Racks, fenced: Racks) -> tuple[Racks, Racks]:
    """Make a rack of the brokers that have none, the first one, unless no broker has a rack (``StripedReplicaPlacer``).

    In ZooKeeper mode racks do not count as long as one broker has none.
    """
    if not any(rack is not None for racks in (active, fenced) for rack in racks.values()):
        return active, fenced
    return _all_racked(active), _all_racked(fenced)


def _all_racked(racks: Racks) -> Racks:
    # No name is empty here, so the rack of the others is none that a broker has.
    return {broker: "" if rack is None else f"={rack}" for broker, rack in racks.items()}


def _dark(active: Racks, fenced: Racks) -> dict[int, str]:
    """Return the fenced brokers in racks without an active one, with their racks; none if any broker has no rack."""
    if None in active.values() or None in fenced.values():
        return {}
    lit = set(active.values())
    return {broker: rack for broker, rack in fenced.items() if rack is not None and rack not in lit}


def _fenced_for(turn: int, in_turn: Sequence[int], others: Sequence[int], racks: int) -> list[int]:
    """List the fenced brokers for a partition: one of each dark rack, then all others. Partitions take turns."""
    spread = _from(turn, in_turn)[:racks]
    return [*spread, *(broker for broker in _from(turn, others) if broker not in spread)]


def _from(turn: int, brokers: Sequence[int]) -> list[int]:
    """List all of ``brokers``, beginning with the one whose turn it is."""
    first = turn % max(1, len(brokers))
    return [*brokers[first:], *brokers[:first]]


def _place(first: int, shift: int, follower: int, brokers: int) -> int:
    return (first + 1 + (shift + follower) % (brokers - 1)) % brokers


def _racks_in_turn(racks: Mapping[int, str]) -> list[int]:
    """List the brokers so that neighbours are in different racks as long as several racks are left."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    queues = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(queue) for queue in queues)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _spread(
    brokers: Sequence[int], racks: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    chosen = [brokers[first]]
    used = {racks[brokers[first]]}
    rack_count = len(set(racks.values()))
    follower = 0
    while len(chosen) < replication_factor:
        broker = brokers[_place(first, shift * rack_count, follower, len(brokers))]
        follower += 1
        if broker not in chosen and (racks[broker] not in used or len(used) == rack_count):
            chosen.append(broker)
            used.add(racks[broker])
    return tuple(chosen)
