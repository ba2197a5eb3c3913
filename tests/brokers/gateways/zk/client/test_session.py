"""A session of a gateway that is no longer the controller."""

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client import connection
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.zookeeper_errors import ControllerMovedError
from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.mirror.stored import stored_state
from brokers.gateways.zk.term.notes import take_notes
from tests.brokers.gateways.zk.zookeeper import Zookeeper

NOTE = f"{znodes.LOG_DIR_EVENTS}/log_dir_event_0000000000"


def controlling(gateway: int) -> Session:
    """Return the session of a gateway that has just become the controller."""
    opened = Session("none:1", 6_000, lambda path: None, lambda why: None)
    opened.open(1_000)
    opened.take(gateway, frozenset({100, 101}), 0, 0)
    return opened


def test_a_former_controller_takes_no_notes(zookeeper: Zookeeper) -> None:
    former, now = controlling(100), controlling(101)
    zookeeper.create(NOTE, b'{"version":1,"broker":1,"event":1}')
    with pytest.raises(ControllerMovedError):
        take_notes(former, znodes.LOG_DIR_EVENTS, znodes.noting_broker_in)
    assert take_notes(now, znodes.LOG_DIR_EVENTS, znodes.noting_broker_in) == [1]
    assert take_notes(now, znodes.LOG_DIR_EVENTS, znodes.noting_broker_in) == []


def test_what_is_gone_already_is_removed(zookeeper: Zookeeper) -> None:
    controlling(100).remove(NOTE)


def test_a_root_that_does_not_exist_yet_is_made_by_a_client_without_one(
    zookeeper: Zookeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[str] = []

    def client(**options: str) -> Zookeeper:
        hosts.append(options["hosts"])
        return zookeeper

    monkeypatch.setattr(connection, "ManyReads", client)
    Session("one:1,two:2/kafka/a", 6_000, lambda path: None, lambda why: None).open(1_000)
    assert hosts == ["one:1,two:2/kafka/a", "one:1,two:2"]
    assert zookeeper.znodes.keys() == {"/kafka", "/kafka/a"}


def test_the_state_of_a_partition_says_which_transaction_wrote_it_last(zookeeper: Zookeeper) -> None:
    reader, place = controlling(100), Place("t", 0)
    path, text = znodes.state_path(place), b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1]}'
    zookeeper.create(path, text, makepath=True)
    made = stored_state(reader, place)
    zookeeper.set(path, text)
    zookeeper.create("/brokers/ids/1", makepath=True)
    written = stored_state(reader, place)
    assert made is not None and written is not None
    began = zookeeper.znodes["/brokers/ids/1"].czxid
    assert made.zxid == zookeeper.znodes[path].czxid < (written.zxid or 0) < began
