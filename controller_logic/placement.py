"""Place replicas on brokers (Kafka's ``AdminUtils.assignReplicasToBrokers``, KIP-36).

Kafka draws a start and a shift at random. Here both come from the topic's id, so a replay places replicas as before.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple


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
    racks: Mapping[int, str | None], partitions: int, replication_factor: int, start: Start, first_partition: int = 0
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
