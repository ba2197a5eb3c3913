"""Cuts of links, each as one script for both kinds of clusters, and what is measured of them."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.faults.hosted_cluster import BROKERS, BUS, ZOOKEEPER, HostedCluster, host_of
from tests.faults.load import Load, Lost
from tests.faults.network import DROP, LOSE, REFUSE, SLOW, Network, network
from tests.support.waiting import wait_until

# The broker that suffers the faults.
LAST = BROKERS[-1]
NOTHING = Lost(0, 0, 0)
# Longer than a broker's session of 9 s and the tick after it.
LONG_S = 13.0
# How long a controller leads at least before it is killed.
LED_S = 3.0


class Measured(NamedTuple):
    """The effects of a fault of ``seconds`` on a cluster, until it was whole again."""

    seconds: float
    # The records and transactions acknowledged during the fault, and the longest time without any.
    acks: int
    commits: int
    gap_s: float
    # The controller that led before, and each leader since then with the second in which it began.
    led: int
    leaders: list[tuple[int, float]]
    # Each fenced broker, and after how many seconds.
    fences: list[tuple[int, float]]
    isr_min: int
    alone_max: int
    leaderless_max: int
    leaderless_s: float
    # From the end of the fault until all replicas were in sync.
    whole_after_s: float
    lost: Lost

    @property
    def has_moved(self) -> bool:
        """Whether leadership moved once, and stayed there."""
        return [voter != self.led for voter, _ in self.leaders] == [True]

    @property
    def was_noticed(self) -> bool:
        """Whether a broker was fenced, a replica was out of sync, or anything acknowledged was lost."""
        return self.fences != [] or self.isr_min < len(BROKERS) or self.lost != NOTHING

    def __str__(self) -> str:
        moved = ", ".join(f"{voter} after {at_s:.1f} s" for voter, at_s in self.leaders) or "nobody else"
        fenced = ", ".join(f"{broker} after {at_s:.1f} s" for broker, at_s in self.fences) or "nobody"
        return (
            f"{self.acks} acks and {self.commits} commits in {self.seconds:.0f} s, longest gap {self.gap_s:.1f} s; "
            f"{self.led} led, then {moved}; fenced: {fenced}; smallest ISR {self.isr_min}, "
            f"{self.alone_max} partitions with one, {self.leaderless_max} leaderless for {self.leaderless_s:.1f} s; "
            f"whole after {self.whole_after_s:.1f} s; lost {self.lost.records} records, "
            f"{self.lost.transactions} transactions, torn {self.lost.torn}"
        )


Scenario = Callable[[HostedCluster, Load, float], Measured]


@contextmanager
def running(kind: type[HostedCluster], folder: Path) -> Iterator[tuple[HostedCluster, Load]]:
    """Run a cluster on a network of its own, with traffic, until the block ends."""
    with network(*kind.hosts()) as net, ExitStack() as undo:
        cluster = kind(folder, net)
        undo.callback(cluster.stop)
        cluster.start()
        load = Load(cluster.bootstrap)
        undo.callback(load.end)
        cluster.wait_until_whole()
        assert load.lost() == NOTHING, "records were lost while nothing failed"
        yield cluster, load


def measure(
    cluster: HostedCluster,
    load: Load,
    seconds: float,
    begin: Callable[[int], None],
    end: Callable[[], None] | None = None,
) -> Measured:
    """Let a fault begin, given the leader, and end after ``seconds``. Then wait until the cluster is whole."""
    # The scenario before may have failed.
    cluster.net.heal()
    cluster.wait_until_whole()
    led = cluster.leading()
    began_s = time.time()
    begin(led)
    time.sleep(max(0.0, began_s + seconds - time.time()))
    ended_s = time.time()
    acks = load.acks_between(began_s, ended_s)
    commits = load.commits_between(began_s, ended_s)
    (end or cluster.net.heal)()
    cluster.wait_until_whole()
    whole_s = time.time()
    seen = cluster.timeline(began_s)
    times = [began_s, *acks, ended_s]
    return Measured(
        ended_s - began_s,
        len(acks),
        commits,
        max(after - before for before, after in itertools.pairwise(times)),
        led,
        seen.leaders_since(),
        seen.fences,
        seen.isr_min,
        seen.alone_max,
        seen.leaderless_max,
        seen.leaderless_s,
        whole_s - ended_s,
        load.lost(),
    )


def hosts_of(nodes: Iterable[int]) -> list[str]:
    """Name the hosts of nodes."""
    return [host_of(node) for node in nodes]


def _others(cluster: HostedCluster, *nodes: int) -> list[str]:
    """Name the hosts of all nodes but these."""
    return hosts_of(node for node in (*BROKERS, *cluster.controllers) if node not in nodes)


def alone(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Cut the leading controller from all brokers and from the other controllers."""
    return measure(cluster, load, seconds, lambda led: cluster.net.cut([host_of(led)], _others(cluster, led)))


def deaf(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Cut all controllers from all brokers."""
    return measure(cluster, load, seconds, lambda _: cluster.net.cut(hosts_of(cluster.controllers), hosts_of(BROKERS)))


def into_minority(cluster: HostedCluster) -> Callable[[int], None]:
    """Return the cut in two, with the last broker and the leading controller on the smaller side."""

    def begin(led: int) -> None:
        cluster.net.cut(hosts_of([led, LAST]), _others(cluster, led, LAST))

    return begin


def minority(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Cut the cluster in two: one broker with the leading controller, and two brokers with the other controllers."""
    return measure(cluster, load, seconds, into_minority(cluster))


def take_overs(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Kill a broker, and then each leading controller in turn until the broker is fenced.

    Each controller comes back before the next one is killed.
    """

    def begin(led: int) -> None:
        began_s = time.time()
        cluster.brokers[LAST].kill()
        while time.time() < began_s + seconds and not cluster.timeline().fenced[LAST]:
            leading = cluster.leading()
            cluster.controllers[leading].kill()
            wait_until(lambda: cluster.leading() != leading, "another controller to lead")  # noqa: B023
            cluster.controllers[leading].start()
            cluster.wait_for_controller(leading)
            time.sleep(LED_S)

    return measure(cluster, load, 0, begin, cluster.brokers[LAST].start)


def untold(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Cut the leading controller from all brokers, and kill one of them, so that it has something to tell."""

    def begin(led: int) -> None:
        cluster.net.cut([host_of(led)], hosts_of(BROKERS))
        cluster.brokers[LAST].kill()

    def end() -> None:
        cluster.net.heal()
        cluster.brokers[LAST].start()

    return measure(cluster, load, seconds, begin, end)


def _ways(net: Network, leader: list[str], others: list[str]) -> dict[str, Callable[[], None]]:
    """Return the possible faults of the link between the leading controller and others."""

    def on_both_ways(how: Sequence[str]) -> None:
        net.cut_one_way(leader, others, how)
        net.cut_one_way(others, leader, how)

    return {
        "cut": lambda: on_both_ways(DROP),
        "to": lambda: net.cut_one_way(others, leader),
        "from": lambda: net.cut_one_way(leader, others),
        "refused": lambda: on_both_ways(REFUSE),
        "lossy": lambda: on_both_ways(LOSE),
        "slow": lambda: on_both_ways(SLOW),
    }


def link(name: str, way: str) -> Scenario:
    """Damage one link of the leading controller, and no other.

    A link is to the brokers (``listener``), the other ``controllers``, the ``bus`` on Kafka or ``zookeeper``. A
    connection of which neither end hears stays half open.
    """

    def scenario(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
        def begin(led: int) -> None:
            nodes = {"listener": BROKERS, "controllers": [node for node in cluster.controllers if node != led]}
            others = hosts_of(nodes[name]) if name in nodes else [name]
            _ways(cluster.net, [host_of(led)], others)[way]()

        return measure(cluster, load, seconds, begin)

    return scenario


SCENARIOS: dict[str, Scenario] = {
    "alone": alone,
    "deaf": deaf,
    "minority": minority,
    "take_overs": take_overs,
    "untold": untold,
} | {
    f"{name}-{way}": link(name, way)
    for name in ("listener", "controllers", BUS, ZOOKEEPER)
    for way in ("cut", "to", "from", "refused", "lossy", "slow")
}
