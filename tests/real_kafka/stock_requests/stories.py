"""The stories that are played, and where."""

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient

from brokers.launch.kafka.zookeeper import ZookeeperProcess
from tests.real_kafka.stock_requests.player import played
from tests.scenarios.story import Story, parse, path_of
from tests.support.waiting import TIMEOUT_S

NAMES = (
    "deletion/deleted",
    "deletion/waits_for_a_dead_broker",
    "elections/leader_dies",
    "elections/many_partitions",
    "elections/nobody_left",
    "elections/preferred",
    "reassign/all_replicas",
    "reassign/cancelled",
    "reassign/one_replica",
    "reassign/removed_broker_is_away",
    "shutdown/comes_back",
    "topics/created_by_assignment",
    "topics/more_partitions_by_assignment",
)

# Stories in which simulated brokers, which answer at once and never fail, lead to the decisions that are written.
DECIDED_ALIKE = (
    "brokers/bounce",
    "brokers/bounce_of_all",
    "brokers/fenced_again_and_again",
    "brokers/session_lost_and_found",
    "deletion/deleted",
    "deletion/of_a_replica_on_a_broker_that_shuts_down",
    "deletion/of_an_offline_partition",
    "deletion/several_partitions",
    "deletion/unknown",
    "deletion/waits_for_a_dead_broker",
    "elections/assignment_order_decides",
    "elections/epochs_over_a_long_life",
    "elections/many_partitions",
    "elections/nobody_left",
    "elections/one_after_the_other",
    "elections/preferred",
    "elections/preferred_not_by_itself",
    "elections/preferred_refusals",
    "elections/several_named",
    "isr/shrink_and_expand",
    "reassign/added_replica_dies",
    "reassign/all_replicas",
    "reassign/brokers_shut_down_meanwhile",
    "reassign/cancelled",
    "reassign/cancelled_after_the_leader_died",
    "reassign/cancelled_while_an_added_replica_leads",
    "reassign/changed_and_cancelled_while_nobody_leads",
    "reassign/leader_dies_meanwhile",
    "reassign/leader_is_removed",
    "reassign/leads_before_it_has_deleted",
    "reassign/more_replicas",
    "reassign/offline_partition",
    "reassign/one_after_another",
    "reassign/one_replica",
    "reassign/removed_broker_is_away",
    "reassign/replaced",
    "reassign/replica_that_stays_is_down",
    "reassign/unclean_election_on_the_target",
    "reassign/unclean_meanwhile",
    "shutdown/asked_three_times",
    "shutdown/comes_back",
    "shutdown/leader",
    "shutdown/session_runs_out",
    "shutdown/two_at_once",
    "unclean/by_request_after_all_died",
    "walks/v08_broker_failure",
    "walks/v08_controlled_shutdown",
    "walks/v08_isr_order",
    "walks/v08_offline_partition_selector",
    "walks/v08_reassignment",
)


def story_named(name: str) -> Story:
    """Return the blocks of a story in which something is asked or happens."""
    story = parse(name, path_of(name).read_text("utf-8"))
    return story._replace(blocks=tuple(played(story)))


@contextmanager
def root_in(server: ZookeeperProcess, name: str) -> Iterator[tuple[str, KazooClient]]:
    """Make a root for a cluster of its own, and yield its address and a client in it."""
    root = name.replace("/", "-")
    outer = KazooClient(hosts=server.address)
    outer.start(timeout=TIMEOUT_S)
    outer.ensure_path(f"/{root}")
    outer.stop()
    outer.close()
    client = KazooClient(hosts=f"{server.address}/{root}", timeout=30)
    client.start(timeout=TIMEOUT_S)
    try:
        yield f"{server.address}/{root}", client
    finally:
        client.stop()
        client.close()
