"""Losses of power: a broker is killed, and the ends of its logs that it had not flushed are gone."""

import time
from collections.abc import Callable

from tests.faults.cut_scenarios import LAST, Measured, Scenario, hosts_of, into_minority, measure
from tests.faults.hosted_cluster import BROKERS, HostedCluster, host_of
from tests.faults.load import Load
from tests.support.waiting import wait_until

# A power loss takes the last UNFLUSHED_S of writes before the fault began. The machine is back after REBOOT_S.
UNFLUSHED_S, REBOOT_S = 3.0, 5.0


def power_loss(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Cut the cluster in two. As the cut ends, the one broker on its side loses power and what it had not flushed."""
    flushed = cluster.log_ends(LAST)
    time.sleep(UNFLUSHED_S)

    def end() -> None:
        cluster.brokers[LAST].kill()
        cluster.cut_logs(LAST, flushed)
        cluster.net.heal()
        time.sleep(REBOOT_S)
        cluster.brokers[LAST].start()

    return measure(cluster, load, seconds, into_minority(cluster), end)


def _last_one_loses_power(
    cluster: HostedCluster, load: Load, seconds: float, begin: Callable[[], None], end: Callable[[], None]
) -> Measured:
    """Take two brokers away from the third. It loses power as they come back, and what it had not flushed before."""
    flushed = cluster.log_ends(LAST)
    time.sleep(UNFLUSHED_S)

    def power_is_lost() -> None:
        cluster.brokers[LAST].kill()
        cluster.cut_logs(LAST, flushed)
        end()
        time.sleep(REBOOT_S)
        cluster.brokers[LAST].start()

    return measure(cluster, load, seconds, lambda _: begin(), power_is_lost)


def followers_cut(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Cut two brokers from the third, so that it is the last in sync of what it leads, and let it lose power."""
    others = hosts_of(broker for broker in BROKERS if broker != LAST)
    return _last_one_loses_power(
        cluster, load, seconds, lambda: cluster.net.cut(others, [host_of(LAST)]), cluster.net.heal
    )


def followers_frozen(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Do the same with two brokers that are frozen."""
    others = [cluster.brokers[broker] for broker in BROKERS if broker != LAST]

    def freeze() -> None:
        for broker in others:
            broker.pause()

    def thaw() -> None:
        for broker in others:
            broker.resume()

    return _last_one_loses_power(cluster, load, seconds, freeze, thaw)


def followers_killed(cluster: HostedCluster, load: Load, seconds: float) -> Measured:
    """Do the same with two brokers that are killed, one after the other, and lose nothing of what they wrote."""
    others = [cluster.brokers[broker] for broker in BROKERS if broker != LAST]

    def kill() -> None:
        for broker in others:
            broker.kill()
            wait_until(lambda: cluster.timeline().fenced[broker.spec.node_id], "it to be fenced")  # noqa: B023

    def start() -> None:
        for broker in others:
            broker.start()

    return _last_one_loses_power(cluster, load, seconds, kill, start)


POWER_LOSSES: dict[str, Scenario] = {
    "power_loss": power_loss,
    "followers_cut": followers_cut,
    "followers_frozen": followers_frozen,
    "followers_killed": followers_killed,
}
