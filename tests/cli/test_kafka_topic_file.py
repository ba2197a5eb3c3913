"""Topics from Strimzi's KafkaTopic resources."""

import json
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import said

TWO = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata:
  name: clicks
  labels: {strimzi.io/cluster: my-cluster}
spec:
  partitions: 3
  replicas: 2
  config:
    retention.ms: 604800000
    min.insync.replicas: 2
    unclean.leader.election.enable: false
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: named-otherwise}
spec: {topicName: __views, replicas: 1}
"""


def test_the_topics_of_a_file_are_created(isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path) -> None:
    (tmp_path / "topics.yaml").write_text(TWO)
    done = isrflow("topics", "create", "-f", "topics.yaml")
    assert (done.exit_code, done.stdout) == (0, "Created topic clicks.\nCreated topic __views.\n"), done.output
    topics = {topic["topic"]: topic for topic in said(isrflow, "topics", "list")}
    assert (topics["clicks"]["partitions"], topics["clicks"]["replication_factor"]) == (3, 2)
    assert topics["clicks"]["config"] == {
        "min.insync.replicas": "2",
        "retention.ms": "604800000",
        "unclean.leader.election.enable": "false",
    }
    again = isrflow("topics", "create", "-f", "topics.yaml", "--if-not-exists")
    assert again.stdout == "Topic clicks exists already.\nTopic __views exists already.\n"


def test_all_topics_are_created_or_none(isrflow: Isrflow, cluster: EmbeddedBus, tmp_path: Path) -> None:
    (tmp_path / "topics.yaml").write_text(TWO.replace("replicas: 1", "replicas: 9"))
    done = isrflow("topics", "create", "-f", "topics.yaml")
    assert (done.exit_code, "  __views: INVALID_REPLICATION_FACTOR" in done.stderr) == (1, True), done.stderr
    assert len(said(isrflow, "topics", "list")) == 2


def test_what_kubectl_prints_as_json_is_taken_from_a_pipe(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    item = {"kind": "KafkaTopic", "metadata": {"name": "clicks"}, "spec": {"replicas": 1}, "status": {}}
    done = isrflow("topics", "create", "-f", "-", text=json.dumps({"kind": "List", "items": [item]}))
    assert done.stdout == "Created topic clicks.\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("kind: Kafka\n", "resource 1: kind is 'Kafka': expected KafkaTopic"),
        ("kind: KafkaTopic\nmetadata: {name: t}\n", "resource 1: Object missing required field `spec`"),
        (
            "kind: KafkaTopic\nmetadata: {name: t}\nspec: {partitions: many}\n",
            "Expected `int | null`, got `str` - at `$.spec.partitions`",
        ),
        ("a: [\n", "is not YAML"),
        ("", "has 0 resources: expected 1 to 10000"),
        (TWO.replace("__views", "clicks"), "names clicks twice"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(isrflow: Isrflow, cluster: EmbeddedBus, text: str, wrong: str) -> None:
    done = isrflow("topics", "create", "-f", "-", text=text)
    assert (done.exit_code, wrong in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("arguments", [(), ("clicks", "-f", "-"), ("-f", "-", "--partitions", "2")])
def test_a_topic_is_described_in_one_way(isrflow: Isrflow, cluster: EmbeddedBus, arguments: tuple[str, ...]) -> None:
    assert isrflow("topics", "create", *arguments, text=TWO).exit_code == 2
