"""The brokers that gateways hear: do they reach the one that leads, or rather another one?

The problem: a gateway is heard as long as its bus works, even if brokers cannot reach it. Then all of them are fenced.

The insight: a broker that does not reach the leader asks the other voters. So each gateway says with its heartbeats
which brokers it hears, and the leader is the one that most of them reach, as in Kafka, where most voters must fetch
from the leader (``LeaderState.timeUntilCheckQuorumExpires``). There are two cases:

* *Another gateway hears more brokers*, for a while: a broker that starts asks any voter before it reaches the leader.
* *The leader no longer hears any broker*, though some live: any other gateway may do better. So that two gateways do
  not take turns while all brokers are dead, this holds only for a leader that was reached in its epoch.

A new leader is judged once brokers have had the time to find it, so leaders change at most that often.
"""

from collections.abc import Iterable, Mapping, Set

from controller_logic.sessions import find_leader_ms
from state.broker import Broker
from state.ids import NO_TIME
from state.metadata_quorum import Gateway, Quorum
from state.policy import Policy

Brokers = Mapping[int, Broker]


def heard(gateway: Gateway, brokers: Brokers) -> Set[int]:
    """Return the registered brokers that a gateway says it hears. While none is registered, every one counts."""
    said = frozenset(gateway.hears or ())
    return said & brokers.keys() if brokers else said


def most_reached(gateways: Iterable[Gateway], brokers: Brokers) -> Gateway | None:
    """Return the gateway that hears the most brokers, of equals the one with the lowest id; None if there is none."""
    return max(gateways, key=lambda one: (len(heard(one, brokers)), -one.gateway), default=None)


def judged_from_ms(quorum: Quorum, policy: Policy) -> int:
    """Return from when on a leader is judged by the brokers that it hears."""
    return quorum.began_ms + find_leader_ms(policy)


def is_deaf(leader: Gateway, quorum: Quorum, brokers: Brokers) -> bool:
    """Return whether brokers no longer reach the leader, though some live. One whose connection was lost may not."""
    if leader.hears is None or not quorum.was_reached or heard(leader, brokers):
        return False
    return any(broker.is_live and broker.connection_lost_ms == NO_TIME for broker in brokers.values())


def is_outdone(leader: Gateway, other: Gateway, brokers: Brokers) -> bool:
    """Return whether another gateway hears more brokers than the leader, if the leader says what it hears."""
    return leader.hears is not None and len(heard(other, brokers)) > len(heard(leader, brokers))
