"""The command level: what it shows and raises, and how any command ends at a level that it does not support."""

import json

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Page
from cli import level as command
from state.cluster import Cluster
from state.level import NEWEST_LEVEL
from state.stored.codec import encode_cluster
from tests.cli.conftest import Isrflow

NEXT = NEWEST_LEVEL + 1


def test_the_level_is_shown_and_is_there_already_when_it_is_raised(cluster: EmbeddedBus, isrflow: Isrflow) -> None:
    assert isrflow("level").output == f"The bus is at level 1. This release supports {NEWEST_LEVEL}.\n"
    assert json.loads(isrflow("level", "--format", "json").output) == {"level": 1, "supported": NEWEST_LEVEL}
    assert isrflow("level", "raise").output == f"The bus is at level {NEWEST_LEVEL}.\n"


def test_a_process_that_does_not_support_the_level_is_named(
    cluster: EmbeddedBus, isrflow: Isrflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "NEWEST_LEVEL", NEXT)
    result = isrflow("level", "raise")
    assert result.exit_code == 1
    assert f"UNSUPPORTED_VERSION: level {NEXT} is not supported by the engine ({NEWEST_LEVEL})" in result.output


@pytest.mark.parametrize(
    "words",
    [
        "topics list",
        "level",
        "level raise --dry-run",
        "brokers list",
        "describe",
        "partitions list",
        "reshard --set shards=2",
    ],
)
def test_a_command_ends_with_one_line_at_a_newer_level(bus: EmbeddedBus, isrflow: Isrflow, words: str) -> None:
    bus.commit(1, 7, [], [Page(0, -1, encode_cluster(Cluster(seq=7, level=NEXT)))])
    result = isrflow(*words.split())
    told = f"the bus is at level {NEXT}, and this isrflow supports {NEWEST_LEVEL} at most: start a newer release"
    assert (result.exit_code, result.output) == (2, f"Error: {told}\n")
