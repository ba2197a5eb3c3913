"""The plan of a reassignment on the command line, and the status of its moves."""

from collections.abc import Sequence

from cli.committed import Committed
from cli.errors import Refused
from cli.kafka_files import Move
from cli.output import ids
from cli.parameters import file_option
from conf.near_names import addition
from controller_logic.reassignment import target_of
from state.partition import Partition

# How many missing partitions are named.
_NAMED_MAX = 10

_NAME, _HELP = (
    "--reassignment-json-file",
    'The plan in Kafka\'s form: {"version": 1, "partitions": [{"topic", "partition", "replicas"}]}.',
)
plan_option = file_option(_NAME, "plan", required=True, help=_HELP)
optional_plan_option = file_option(_NAME, "plan", help=_HELP)


def partition_of(found: Committed, move: Move) -> Partition | None:
    """Return the partition of a move; None if there is none."""
    topic = found.topics.get(move.topic)
    return topic.partitions[move.partition] if topic and move.partition < len(topic.partitions) else None


def check_there(found: Committed, moves: Sequence[Move]) -> None:
    """Refuse a plan as a whole if any of its partitions does not exist."""
    if missing := missing_in(found, moves):
        raise Refused(missing.replace("There", "there", 1))


def missing_in(found: Committed, moves: Sequence[Move]) -> str:
    """Name the partitions of moves that do not exist, and a topic near the first; empty if all exist."""
    gone = [move for move in moves if partition_of(found, move) is None]
    if not gone:
        return ""
    names = ", ".join(f"{move.topic}-{move.partition}" for move in gone[:_NAMED_MAX])
    more = " and more" if len(gone) > _NAMED_MAX else ""
    there = "There is no partition" if len(gone) == 1 else "There are no partitions"
    return f"{there} {names}{more}{addition(gone[0].topic, found.topics) or '.'}"


def status_of(found: Committed, move: Move) -> tuple[str, str]:
    """Return the status of a move as a word, and in the words of Kafka's tool."""
    name = f"{move.topic}-{move.partition}"
    partition = partition_of(found, move)
    if partition is None:
        return "missing", missing_in(found, [move])
    if partition.is_reassigning:
        if target_of(partition) == move.replicas:
            return "in_progress", f"Reassignment of partition {name} is still in progress."
        return "other", f"Partition {name} is being moved to other replicas: {ids(target_of(partition))}."
    if partition.replicas == move.replicas:
        return "complete", f"Reassignment of partition {name} is completed."
    there, planned = ids(partition.replicas), ids(move.replicas)
    return "other", f"There is no active reassignment of partition {name}, but its replicas are {there}, not {planned}."
