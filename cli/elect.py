"""Ask for elections."""

from pathlib import Path

import click
from msgspec import UNSET

from cli.admin_requests import UNKNOWN_TOPIC, Ask, asks, check_all, perform
from cli.kafka_files import read_election
from cli.parameters import file_option
from state.decisions import Answer, AnyDecision, LeaderAndIsr


@click.command("elect")
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    required=True,
    help="preferred: the first replica leads, if it is in sync. unclean: any online replica may lead.",
)
@click.option("--topic", metavar="TOPIC", help="The partition's topic. Needs --partition.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="The partition. Needs --topic.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions that need an election.")
@file_option(
    "--path-to-json-file",
    "path",
    help='The partitions in Kafka\'s form: {"partitions": [{"topic": "orders", "partition": 0}]}.',
)
@asks
def command(
    ask: Ask,
    election_type: str,
    topic: str | None,
    partition: int | None,
    all_topic_partitions: bool,
    path: Path | None,
) -> None:
    """Elect leaders, with the options of kafka-leader-election.

    Name the partitions in exactly one way: --topic with --partition, --all-topic-partitions or --path-to-json-file.
    An unclean election may lose records. A partition that needs no election is not an error. If a file names a
    partition that does not exist, no leader is elected.

    \b
    Examples:
      isrflow elect --election-type preferred --all-topic-partitions
      isrflow elect --election-type preferred --path-to-json-file elect.json
      isrflow elect --election-type unclean --topic orders --partition 0 --dry-run
    """
    if (topic is None) != (partition is None):
        raise click.UsageError("--topic and --partition belong together")
    if [topic is not None, all_topic_partitions, path is not None].count(True) != 1:
        raise click.UsageError(
            "name exactly one of --topic with --partition, --all-topic-partitions and --path-to-json-file"
        )
    partitions: list[dict[str, object]] | None = None
    if topic is not None:
        partitions = [{"topic": topic, "partition": partition}]
    elif path is not None:
        partitions = read_election(path)
    request = {"kind": "elect_leaders", "election_type": election_type.lower(), "partitions": partitions}
    if path is not None:
        check_all(ask, [request], frozenset({UNKNOWN_TOPIC, "INVALID_TOPIC_EXCEPTION"}))
    elections = _Elections()
    perform(ask, [request], elections.said, frozenset({"ELECTION_NOT_NEEDED"}), elections.note)


class _Elections:
    """What was elected. The answer does not name the leaders, so they come from the decisions beside it."""

    def __init__(self) -> None:
        self._elected: dict[tuple[str, int], str] = {}

    def note(self, decision: AnyDecision) -> None:
        """Remember an election."""
        if isinstance(decision, LeaderAndIsr):
            risk = "; it was not in sync, so records may be lost" if decision.unclean else ""
            said = f"broker {decision.leader} was elected in leader epoch {decision.leader_epoch}{risk}"
            self._elected[decision.topic, decision.partition] = said

    def said(self, answer: Answer) -> str:
        """Return a line for each partition of the answer that is not refused."""
        results = () if answer.results is UNSET else answer.results
        lines = []
        for one in results:
            elected = self._elected.get((one.topic, one.partition), "a leader was elected")
            told = {"NONE": elected, "ELECTION_NOT_NEEDED": f"no election is needed: {one.message}"}
            if one.error in told:
                lines.append(f"{one.topic}-{one.partition}: {told[one.error]}")
        if answer.results_left_out is not UNSET:
            lines.append(f"{answer.results_left_out} more partitions are not listed, because the answer has no room.")
        return "\n".join(lines) or "No partition needs an election."
