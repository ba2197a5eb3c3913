"""A mistyped topic is answered with the nearest name, also by commands that change something."""

import json
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow

UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION: there is no"
ELECT = ["elect", "--election-type", "preferred"]


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]], ids=["real", "dry run"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["topics", "delete", "ordes"], f"{UNKNOWN} topic ordes; did you mean 'orders'?"),
        (["topics", "alter", "ordes", "--config", "retention.ms=1"], f"{UNKNOWN} topic ordes; did you mean 'orders'?"),
        (["topics", "add-partitions", "ordes", "--partitions", "4"], f"{UNKNOWN} topic ordes; did you mean 'orders'?"),
        ([*ELECT, "--topic", "ordes", "--partition", "0"], f"{UNKNOWN} partition ordes-0; did you mean 'orders'?"),
        # The name is right, and this one is near nothing.
        ([*ELECT, "--topic", "orders", "--partition", "9"], f"{UNKNOWN} partition orders-9"),
        (["topics", "delete", "zebra"], f"{UNKNOWN} topic zebra"),
    ],
)
def test_a_refusal_suggests_the_nearest_topic(
    isrflow: Isrflow, cluster: EmbeddedBus, arguments: list[str], said: str, dry_run: list[str]
) -> None:
    done = isrflow(*arguments, *dry_run)
    assert (done.exit_code, done.stderr.endswith(f"{said}\n")) == (1, True), done.output


def test_a_plan_with_a_mistyped_topic_is_answered_with_the_nearest(
    isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path
) -> None:
    moves = [{"topic": "ordes", "partition": number, "replicas": [2, 3]} for number in (0, 1)]
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": moves}))
    plan = ("--reassignment-json-file", "plan.json")
    for verb in ("execute", "cancel"):
        done = isrflow("reassign", verb, *plan)
        suggested = "Error: there are no partitions ordes-0, ordes-1; did you mean 'orders'?\n"
        assert (done.exit_code, done.output) == (1, suggested)
    assert "There is no partition ordes-1; did you mean 'orders'?\n" in isrflow("reassign", "verify", *plan).stdout


@pytest.mark.parametrize("command", ["events", "decisions"])
def test_a_log_without_a_mistyped_topic_is_answered_with_the_nearest(
    isrflow: Isrflow, cluster: EmbeddedBus, command: str
) -> None:
    done = isrflow(command, "--topic", "ordes")
    assert (done.exit_code, done.output) == (0, "There is no topic 'ordes'; did you mean 'orders'?\n")
    for topic in ("orders", "zebra"):
        assert isrflow(command, "--topic", topic).stderr == ""
    # Said before it waits, because nothing may ever come.
    isrflow("topics", "delete", "ordes")
    done = isrflow(command, "--topic", "ordes", "--follow", "--limit", "1")
    assert (done.exit_code, done.stderr) == (0, "There is no topic 'ordes'; did you mean 'orders'?\n")
    assert done.stdout.count("\n") == 1


def test_what_was_refused_about_a_mistyped_topic_is_told_with_the_nearest_name(
    isrflow: Isrflow, cluster: EmbeddedBus
) -> None:
    isrflow("topics", "delete", "ordes", "--as", "User:alice")
    done = isrflow("partitions", "explain", "ordes-0")
    assert (done.exit_code, done.stderr) == (0, "There is no topic 'ordes'; did you mean 'orders'?\n")
    assert "User:alice asked to delete the topic ordes." in done.stdout
