"""The past on the command line: why a partition is as it is, and the state as it was."""

import json
from pathlib import Path

import pytest

from bus.interface import Bus
from cli.partitions import explain
from history.reach import BeyondReachError
from history.state_at import StateAt
from tests.cli.conftest import Isrflow
from tests.history.test_explanation import decided

STORY = "elections/leader_dies"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided(tmp_path / "bus.db", STORY).close()
    monkeypatch.setenv("ISRFLOW_BUS", str(tmp_path / "bus.db"))


def test_a_partition_is_explained_in_sentences(isrflow: Isrflow, told: None) -> None:
    lines = isrflow("partitions", "explain", "t-0").stdout.splitlines()
    assert lines[0].startswith("t-0 as of seq 29: leader 2")
    assert "  Broker 1 was passed over because it was fenced." in lines


def test_a_partition_is_explained_as_of_a_seq(isrflow: Isrflow, told: None) -> None:
    document = json.loads(isrflow("partitions", "explain", "t-0", "--at", "20", "--format", "json").stdout)
    assert [step["seq"] for step in document["steps"]] == [8]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["u-0"], 1, "nothing was decided about a partition u-0 through seq 29; decisions go back to seq 2."),
        (["tt-0"], 1, "partition tt-0 through seq 29; decisions go back to seq 2; did you mean 't'?"),
        (["t-0", "--at", "999"], 3, "seq 999 is not decided yet"),
        (["t-0", "--at", "noon"], 2, "--at: 'noon' is not a moment: expected a seq"),
        (["t-7"], 1, "topic t has 1 partition, t-0: there is no t-7."),
        (["t-7", "--at", "8"], 1, "topic t has 1 partition, t-0: there is no t-7."),
        (["t"], 2, "'t' is not a partition"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    isrflow: Isrflow, told: None, arguments: list[str], exit_code: int, said: str
) -> None:
    done = isrflow("partitions", "explain", *arguments)
    assert done.exit_code == exit_code
    assert said in done.stderr


def test_the_explanation_says_if_the_partition_may_not_exist(
    isrflow: Isrflow, told: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beyond_reach(bus: Bus, seq: int) -> StateAt:
        raise BeyondReachError("that state is gone")

    monkeypatch.setattr(explain, "state_at", beyond_reach)
    assert "or its topic has no such partition" in isrflow("partitions", "explain", "t-7", "--at", "20").stdout


def test_the_state_is_described_as_it_was(isrflow: Isrflow, told: None) -> None:
    then = json.loads(isrflow("describe", "--at", "20", "--format", "json").stdout)
    now = json.loads(isrflow("describe", "--format", "json").stdout)
    assert (then["seq"], then["partitions"][0]["leader"]) == (20, 1)
    assert (now["seq"], now["partitions"][0]["leader"]) == (29, 2)
    assert isrflow("describe", "--at", "999").exit_code == 3


@pytest.mark.parametrize(
    "command", [("describe", "--at"), ("partitions", "explain", "t-0", "--at"), ("whatif", "--set", "pages=2", "--to")]
)
def test_a_time_before_the_first_event_is_no_state(isrflow: Isrflow, told: None, command: tuple[str, ...]) -> None:
    done = isrflow(*command, "2001-01-01T00:00:00")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no event had come by 2001-01-01T00:00:00" in done.stderr
    assert done.stderr.startswith("Error: no event")
