"""Make another in-sync replica the leader of a partition."""

import click

from cli.admin_requests import UNKNOWN_TOPIC, Ask, Request, asks, check_all, perform
from cli.committed import committed
from cli.errors import Refused
from cli.partitions.name import PARTITION, PartitionName
from state.decisions import Answer


@click.command("transfer-leadership")
@click.argument("name", type=PARTITION, metavar="TOPIC-N")
@click.option("--to", type=int, required=True, metavar="ID", help="The broker that is to lead.")
@asks
def command(ask: Ask, name: PartitionName, to: int) -> None:
    """Make a broker the preferred replica of a partition, and elect it.

    The broker must be an in-sync replica. It becomes the first replica of the assignment, so a later balance of
    leaders keeps it. No replica moves.

    \b
    Examples:
      isrflow partitions transfer-leadership orders-0 --to 2 --dry-run
      isrflow partitions transfer-leadership orders-0 --to 2
    """
    _, partition = name.find(committed(ask.settings))
    if to not in partition.isr:
        raise Refused(f"broker {to} is not in the ISR of {name}: {', '.join(map(str, partition.isr)) or 'empty'}.")
    if partition.is_reassigning:
        raise Refused(f"{name} is being reassigned; 'isrflow reassign list' shows the moves.")
    replicas = (to, *(replica for replica in partition.replicas if replica != to))
    where: Request = {"topic": name.topic, "partition": name.partition}
    requests: list[Request] = [{"kind": "elect_leaders", "election_type": "preferred", "partitions": [where]}]
    if replicas != partition.replicas:
        # The election follows the new order in the log.
        requests.insert(0, {"kind": "alter_reassignment", **where, "replicas": replicas})

    check_all(ask, requests, frozenset({UNKNOWN_TOPIC, "INVALID_REPLICA_ASSIGNMENT", "PREFERRED_LEADER_NOT_AVAILABLE"}))

    def done(answer: Answer) -> str:
        if answer.request == "alter_reassignment":
            return f"Broker {to} is the preferred replica of {name}."
        return f"Broker {to} leads {name}{' already' if answer.error != 'NONE' else ''}."

    perform(ask, requests, done, frozenset({"ELECTION_NOT_NEEDED"}))
