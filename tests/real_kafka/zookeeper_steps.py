"""What is done to brokers in ZooKeeper mode under traffic, whatever their ``inter.broker.protocol.version``."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from brokers.gateways.zk.messages import LEADER_AND_ISR, UPDATE_METADATA
from brokers.launch.kafka.properties import ZOOKEEPER_SESSION_MS
from brokers.launch.kafka.zookeeper import TICK_MS
from brokers.wire.errors import ErrorCode
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.cluster_command import on_cluster
from tests.support.freezing import freeze_process
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster

HALF = PARTITIONS // 2
# ZooKeeper says when a broker is gone, so the engine's own sessions are long.
POLICY = {"broker_session_timeout_ms": 60_000, "auto_leader_rebalance_enable": False}
# A client that is answered by nobody waits until the session of a frozen broker has ended.
CLIENT_TIMEOUT_MS = ZOOKEEPER_SESSION_MS + 2 * TICK_MS
Replicas = tuple[int, ...]
# The client's own error for a request to a node that metadata no longer names.
GIVEN_UP = "_DESTROY_BROKER"


def status_of(folder: Path) -> tuple[int, dict[str, Any]]:
    code, said = on_cluster(folder, "status", "--format", "json")
    return code, json.loads(said.splitlines()[0])


def goes_on_through_failures(cluster: ZookeeperCluster, folder: Path, traffic: Traffic) -> None:
    """Kill a broker, stop another, and kill the gateway."""
    cluster.broker(1).kill()
    wait_until(lambda: cluster.states()[1] == "fenced", "the dead broker to be fenced")
    wait_until(lambda: not leads(cluster, 1), "another leader")
    traffic.goes_on()
    assert status_of(folder)[0] == 3
    cluster.restart(1)
    cluster.wait_for_isr("t", 3)

    assert cluster.broker(2).stop()
    wait_until(lambda: not leads(cluster, 2), "another leader")
    traffic.goes_on()
    cluster.restart(2)
    cluster.wait_for_isr("t", 3)

    gateways_take_turns(cluster, traffic)
    zookeeper_comes_back(cluster, traffic, late=True)


def gateways_take_turns(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Freeze the gateway that leads, and continue it when another one leads. Then kill that one."""
    first = cluster.leading_gateway()
    freeze_process(cluster.bus_path, first.pid)
    wait_until(lambda: cluster.controller() != first.voter.voter, "another gateway to be the controller")
    second = cluster.leading_gateway()
    traffic.goes_on()
    first.resume()
    cluster.create(NewTopic("u", 1, 3))
    cluster.agree("u")
    wait_until(lambda: "no longer leads" in first.log_file.read_text(), "the first gateway to hear of it")
    refused = dict.fromkeys((LEADER_AND_ISR, UPDATE_METADATA), ErrorCode.STALE_CONTROLLER_EPOCH)
    assert cluster.answers_to_a_stale_controller(1) == refused
    second.kill()
    wait_until(lambda: cluster.controller() == first.voter.voter, "the first gateway to lead again")
    second.start()
    second.wait_until_started()
    traffic.goes_on()


def zookeeper_comes_back(cluster: ZookeeperCluster, traffic: Traffic, *, late: bool) -> None:
    """Kill ZooKeeper and start it again: at once, or after the gateway's term has ended. Brokers serve meanwhile."""
    gateway, before = cluster.leading_gateway(), cluster.controller_epoch()
    cluster.zookeeper.kill()
    traffic.goes_on()
    if late:
        wait_until(lambda: "ZooKeeper was out of reach" in gateway.log_file.read_text(), "the term to end")
    cluster.zookeeper.start()
    cluster.zookeeper.wait_until_started()
    if late:
        wait_until(lambda: cluster.controller_epoch() > before, "another term")
    create_while_controllers_change(cluster, NewTopic("after-zookeeper", 1, 3))
    cluster.agree("after-zookeeper")
    cluster.wait_until_stored("after-zookeeper")
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()


def create_while_controllers_change(cluster: ZookeeperCluster, topic: NewTopic) -> None:
    """Create a topic as soon as a controller leads.

    The client gives up a request to a gateway that metadata no longer names. The topic may have been created then.
    """
    is_unknown = False

    def is_created() -> bool:
        nonlocal is_unknown
        try:
            cluster.create(topic)
        except KafkaException as error:
            said = error.args[0].name()
            if is_unknown and said == "TOPIC_ALREADY_EXISTS":
                return True
            if said not in ("NOT_CONTROLLER", GIVEN_UP):
                raise
            is_unknown |= said == GIVEN_UP
            return False
        return True

    wait_until(is_created, "the gateway to create a topic")


def is_handed_back_and_adopted(
    cluster: ZookeeperCluster, folder: Path, next_engine: RulesEngine, next_bus: Path, traffic: Traffic
) -> ZookeeperCluster:
    """Leave the cluster to a stock controller, and take it over from there onto another bus. This ends the traffic."""
    assert on_cluster(folder, "hand-back")[0] == 0
    lives_by_itself(cluster, folder, traffic)
    next_engine.start(next_bus, **POLICY)
    cluster.bus.close()
    cluster = adopted(folder, next_bus, traffic)
    traffic.end()
    cluster.tool_agrees("t")
    cluster.wait_until_stored("t")
    return cluster


def lives_by_itself(cluster: ZookeeperCluster, folder: Path, traffic: Traffic) -> None:
    """Check that a stock controller goes on from what was left to it. Broker 2 stays killed."""
    wait_until(lambda: cluster.controller() in {1, 2, 3}, "a broker to become the controller")
    code, found = status_of(folder)
    assert (code, found["engine"], found["gateways"]) == (0, None, [])
    assert on_cluster(folder, "hand-back")[0] == 1
    traffic.goes_on()
    cluster.tool("TopicCommand", "--create --topic by-kafka --partitions 1 --replication-factor 2")
    cluster.broker(2).kill()
    cluster.wait_for_stored("t", lambda stored: 2 not in {held[0] for held in stored.values()}, "another leader")
    traffic.goes_on()


def adopted(folder: Path, bus_path: Path, traffic: Traffic) -> ZookeeperCluster:
    """Take the cluster over, and check that the engine goes on from what a stock controller left to it.

    The gateway begins without broker 2, of which the engine has never heard. Then ``adopt`` starts that broker.
    """
    code, said = on_cluster(folder, "adopt", "--bus", str(bus_path))
    assert code == 0, said
    cluster = ZookeeperCluster(folder, bus_path)
    assert cluster.controller() in cluster.gateways
    assert cluster.decided("by-kafka").keys() == {0}
    traffic.goes_on()
    cluster.wait_for_isr("t", 3)
    cluster.wait_until_stored("t")
    first, second = cluster.partitions("by-kafka")[0]["replicas"]
    cluster.reassign("by-kafka", (second, 6 - first - second))
    is_frozen_and_continued(cluster, traffic, 3)
    return cluster


def is_frozen_and_continued(cluster: ZookeeperCluster, traffic: Traffic, broker: int) -> None:
    """Freeze a broker for longer than its session with ZooKeeper lasts, and continue it."""
    cluster.broker(broker).pause()
    wait_until(lambda: not leads(cluster, broker), "another leader")
    traffic.goes_on()
    cluster.broker(broker).resume()
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()


def leads(cluster: ZookeeperCluster, broker: int) -> bool:
    return broker in {held["leader"] for held in cluster.partitions("t").values()}


def moves_go_on_when_a_broker_comes_back(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Move one replica of each partition of t to broker 3, which is frozen, killed in the middle, and started again.

    Before, each partition is on the brokers 1 and 2, led by either.
    """
    targets: list[Replicas] = [(2, 3), (1, 3)] * HALF
    cluster.broker(3).pause()
    cluster.ask_to_move("t", targets)
    wait_until(lambda: all(held["adding_replicas"] for held in cluster.partitions("t").values()), "the moves to begin")
    cluster.broker(3).kill()
    wait_until(lambda: cluster.states()[3] == "fenced", "the dead broker to be fenced")
    traffic.goes_on()
    assert all(held["adding_replicas"] == (3,) for held in cluster.partitions("t").values())
    cluster.restart(3)
    wait_until_moved(cluster, targets)
    cluster.wait_for_isr("t", 2)
    traffic.goes_on()


def wait_until_moved(cluster: ZookeeperCluster, targets: list[Replicas]) -> None:
    """Wait until the partitions of t have these replicas, and others can be asked for."""
    wait_until(
        lambda: [held["replicas"] for _, held in sorted(cluster.partitions("t").items())] == targets, "the moves"
    )
    cluster.wait_until_moves_end()
