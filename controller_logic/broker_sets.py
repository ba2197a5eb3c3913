"""The sets of brokers that rules ask for: which may lead, which serve, which report.

A batch may change the state of a thousand brokers, one at a time, and rules ask in between. A pass through all brokers
at each change would take a million steps in every shard. So a change of one broker changes only the sets that it
enters or leaves.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from state.broker import Broker

Ids = frozenset[int]


class BrokerSets(NamedTuple):
    """Some brokers' ids, by what the brokers may and must do."""

    # May lead and join an ISR.
    active: Ids
    # Serve requests. active ⊆ live
    live: Ids
    # Report that they lead or follow; brokers of Kafka 4 do not. reporting ⊆ live
    reporting: Ids
    # Report what they deleted, now or when they are back. A broker of Kafka 4 that is away does not: it removes stray
    # logs when it starts, because it knows topics by their ids.
    awaited: Ids
    # Have one of several log directories left, which gets each new replica.
    with_dir_left: Ids
    # Have several log directories, and choose one for each new replica.
    choosing_dirs: Ids

    def have_one_dir(self, replicas: Iterable[int]) -> bool:
        """Return whether none of these brokers has several log directories. What is in the only one can be read."""
        return self.choosing_dirs.isdisjoint(replicas) and self.with_dir_left.isdisjoint(replicas)

    def without(self, broker: int) -> "BrokerSets":
        return BrokerSets(*[_with(held, broker, is_in=False) for held in self])

    def put(self, broker: Broker) -> "BrokerSets":
        """Return the sets with a broker as it is now, whatever it was."""
        number = broker.broker
        wanted = _memberships(broker)
        return BrokerSets(*[_with(held, number, is_in=is_in) for held, is_in in zip(self, wanted, strict=True)])


def sets_of(brokers: Iterable[Broker]) -> BrokerSets:
    # Most brokers are alike, so few are looked at.
    alike: defaultdict[tuple[object, ...], list[Broker]] = defaultdict(list)
    for broker in brokers:
        alike[broker.state, broker.is_kraft, len(broker.log_dirs), len(broker.offline_log_dirs)].append(broker)
    memberships = [(_memberships(some[0]), [broker.broker for broker in some]) for some in alike.values()]
    return BrokerSets(
        *[
            frozenset().union(*[ids for is_in, ids in memberships if is_in[place]])
            for place in range(len(BrokerSets._fields))
        ]
    )


def _with(held: Ids, broker: int, *, is_in: bool) -> Ids:
    if (broker in held) == is_in:
        return held
    return held | {broker} if is_in else held - {broker}


def inputs_of(broker: Broker) -> tuple[object, ...]:
    """Return everything about a broker that the sets and ``dirs_left`` depend on."""
    return broker.state, broker.is_kraft, broker.log_dirs, broker.offline_log_dirs


def _memberships(broker: Broker) -> tuple[bool, ...]:
    """Return for each set whether the broker is in it."""
    is_active, is_live = broker.is_active, broker.is_live
    is_away = broker.is_kraft and not is_active
    has_several = broker.has_several_dirs
    has_one_left = has_several and len(broker.log_dirs) == 1
    return (
        is_active,
        is_live,
        is_live and not broker.is_kraft,
        not is_away,
        has_one_left,
        has_several and not has_one_left,
    )
