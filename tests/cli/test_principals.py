"""Who asked, from the command line to what is shown."""

import json

import pytest

from bus.embedded import EmbeddedBus
from cli import principal
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import said


def test_a_command_names_its_user_and_host(
    isrflow: Isrflow, cluster: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(principal.getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(principal.socket, "gethostname", lambda: "host-1")
    said(isrflow, "topics", "create", "clicks", "--partitions", "1")
    lines = isrflow("decisions", "--format", "text").stdout.splitlines()
    assert [line for line in lines if "topic clicks created" in line and line.endswith(", by User:alice@host-1)")]
    told = isrflow("partitions", "explain", "clicks-0").stdout
    assert "User:alice@host-1 asked for the topic clicks." in told
    [answer] = said(isrflow, "topics", "delete", "clicks")
    assert answer["principal"] == "User:alice@host-1"


def test_a_command_may_ask_in_anothers_name(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    said(isrflow, "brokers", "fence", "1", "--as", "User:bob")
    told = isrflow("partitions", "explain", "orders-0").stdout
    assert "  User:bob asked to fence broker 1." in told.splitlines()
    lines = isrflow("events", "--format", "text").stdout
    assert "User:bob asked to fence broker 1." in lines
    assert '"principal":"User:bob"' in json.dumps(isrflow("events").stdout).replace("\\", "")


@pytest.mark.parametrize("name", ["bob", ":bob", "User:", "User:b\nob", "User:" + "b" * 250])
def test_what_is_no_principal_is_refused(isrflow: Isrflow, cluster: EmbeddedBus, name: str) -> None:
    done = isrflow("topics", "delete", "orders", "--as", name)
    assert (done.exit_code, "expected TYPE:NAME, such as User:alice" in done.stderr) == (2, True)


def test_a_user_without_a_name_is_named_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(principal.getpass, "getuser", nameless)
    monkeypatch.setattr(principal.os, "getuid", lambda: 4711)
    assert principal.own_principal().startswith("User:4711@")
