"""A connection to ZooKeeper is lost and comes back: the term goes on, and every write is made once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KazooState

from brokers.gateways.zk import znodes
from brokers.gateways.zk.session import Session
from brokers.gateways.zk.transactions import Create, Delete, Set
from brokers.gateways.zk.zookeeper_errors import LostAnswerError, MissingZnodeError, RefusedWriteError
from state.events import BrokerRegister
from tests.brokers.gateways.zk.gateways import Gateways, gateways
from tests.brokers.gateways.zk.zookeeper import Transaction, Zookeeper
from tests.support.waiting import wait_until

GATEWAYS = frozenset({100})
# A gateway looks by itself once in ten minutes.
ONLY_WHEN_TOLD = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 600_000}


class Losses:
    """Transactions whose answers get lost: each entry of ``are_made`` is about one of the next."""

    def __init__(self, zookeeper: Zookeeper, monkeypatch: pytest.MonkeyPatch) -> None:
        self.are_made: list[bool] = []
        monkeypatch.setattr(zookeeper, "transaction", lambda: LossyTransaction(zookeeper, self.are_made))


class LossyTransaction(Transaction):
    def __init__(self, zookeeper: Zookeeper, are_made: list[bool]) -> None:
        super().__init__(zookeeper)
        self._are_made = are_made

    def commit(self) -> list[object]:
        if not self._are_made:
            return super().commit()
        if self._are_made.pop(0):
            super().commit()
        raise ConnectionLoss


@pytest.fixture
def losses(zookeeper: Zookeeper, monkeypatch: pytest.MonkeyPatch) -> Losses:
    return Losses(zookeeper, monkeypatch)


def controlling(connected: Callable[[bool], None] | None = lambda is_connected: None) -> Session:
    """Return the session of a gateway that has just become the controller."""
    opened = Session("none:1", 6_000, lambda path: None, lambda why: None, connected)
    opened.open(1_000)
    opened.take(100, GATEWAYS, 0, 0)
    return opened


@pytest.mark.parametrize("are_made", [[True], [False], [False, True], [True, False], [True, True], [False] * 9])
def test_a_write_whose_answer_is_lost_is_made_once(zookeeper: Zookeeper, losses: Losses, are_made: list[bool]) -> None:
    session = controlling()
    session.write([Create("/t", b"0")])
    losses.are_made = list(are_made)
    # Without a version, so that ZooKeeper would make it again each time.
    session.write([Set("/t", b"1"), Create(znodes.CONFIG_CHANGE, b"", sequence=True)])
    assert losses.are_made == []
    assert (zookeeper.znodes["/t"].data, zookeeper.znodes["/t"].version) == (b"1", 1)
    assert len(zookeeper.get_children(znodes.CONFIG_CHANGES)) == 1
    session.write([Delete("/t")])
    assert "/t" not in zookeeper.znodes


def test_a_write_is_given_up_whose_connection_is_lost_again_and_again(zookeeper: Zookeeper, losses: Losses) -> None:
    session = controlling()
    losses.are_made = [False] * 11
    with pytest.raises(LostAnswerError):
        session.write([Create("/t", b"")])
    assert losses.are_made == [False]


def test_only_a_write_that_is_repeated_may_have_been_made(zookeeper: Zookeeper, losses: Losses) -> None:
    session = controlling()
    # Somebody else wrote there.
    zookeeper.set(znodes.WRITES, b"")
    with pytest.raises(RefusedWriteError, match=f"{znodes.WRITES}: BadVersionError"):
        session.write([Create("/t", b"")])
    assert "/t" not in zookeeper.znodes


def test_a_znode_is_not_taken_for_removed_if_the_count_of_transactions_is_gone(zookeeper: Zookeeper) -> None:
    session = controlling()
    session.write([Create("/t", b"")])
    zookeeper.delete(znodes.WRITES)
    with pytest.raises(RefusedWriteError, match=f"{znodes.WRITES}: NoNodeError") as refused:
        session.remove("/t")
    assert not isinstance(refused.value, MissingZnodeError)


def test_a_write_that_is_refused_when_it_is_repeated_was_not_made(zookeeper: Zookeeper, losses: Losses) -> None:
    session = controlling()
    losses.are_made = [False]
    with pytest.raises(RefusedWriteError, match="/t: NoNodeError"):
        session.write([Set("/t", b"")])
    session.write([Create("/t", b"")])


def test_a_session_that_ends_with_its_connection_repeats_nothing(zookeeper: Zookeeper, losses: Losses) -> None:
    session = controlling(connected=None)
    losses.are_made = [False]
    with pytest.raises(LostAnswerError):
        session.write([Create("/t", b"")])
    fails_once(zookeeper, znodes.TOPICS)
    with pytest.raises(LostAnswerError):
        session.read(znodes.TOPICS)
    fails_once(zookeeper, znodes.TOPICS)
    with pytest.raises(LostAnswerError):
        list(session.read_each([znodes.TOPICS]))


def test_a_read_whose_answer_is_lost_is_made_again(zookeeper: Zookeeper) -> None:
    session = controlling()
    fails_once(zookeeper, znodes.TOPICS)
    assert session.read(znodes.TOPICS) is not None


def test_of_many_reads_only_those_are_made_again_whose_answers_are_lost(zookeeper: Zookeeper) -> None:
    session = controlling()
    paths = [f"/n{number}" for number in range(3)]
    session.write([Create(path, path.encode()) for path in paths])
    fails_once(zookeeper, paths[1])
    assert [held and held[0] for held in session.read_each([*paths, "/none"])] == [b"/n0", b"/n1", b"/n2", None]
    session.write([Create("/n1/below", b"")])
    assert list(session.children_of_each([*paths, "/none"])) == [[], ["below"], [], []]


def fails_once(zookeeper: Zookeeper, path: str) -> None:
    failing = [path]

    def read(path: str) -> None:
        if path in failing:
            failing.remove(path)
            raise ConnectionLoss

    zookeeper.before_read = read


class Led:
    """A gateway that leads, and the listener that its client has."""

    def __init__(self, led: Gateways, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = led.tree
        self.heard: list[Callable[[str], None]] = []
        monkeypatch.setattr(led.tree, "add_listener", self.heard.append)
        led.start(100)
        wait_until(lambda: led.leads(100), "the gateway to lead")

    def loses(self) -> None:
        # The client forgets its watches.
        self.tree.watches.clear()
        self.heard[-1](KazooState.SUSPENDED)

    def finds(self) -> None:
        self.heard[-1](KazooState.CONNECTED)


def test_what_changed_without_a_connection_is_found_when_there_is_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **ONLY_WHEN_TOLD) as led:
        gateway = Led(led, monkeypatch)
        wait_until(lambda: znodes.CONTROLLER in led.tree.watches, "the gateway to watch its place")
        gateway.loses()
        led.tree.put_broker(1)
        gateway.finds()
        wait_until(lambda: led.events(BrokerRegister), "the broker to be registered")
        wait_until(lambda: znodes.CONTROLLER in led.tree.watches, "the gateway to watch its place again")
        assert led.leads(100)
        assert led.tree.epochs == [(100, 1)]


def test_a_place_that_was_lost_without_a_connection_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **ONLY_WHEN_TOLD) as led:
        gateway = Led(led, monkeypatch)
        gateway.loses()
        led.tree.delete(znodes.CONTROLLER)
        gateway.finds()
        wait_until(lambda: led.leads(100) and led.tree.epochs == [(100, 1), (100, 2)], "the next term")


def test_a_term_ends_that_is_without_a_connection_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **ONLY_WHEN_TOLD, zookeeper_session_timeout_ms=100) as led:
        gateway = Led(led, monkeypatch)
        gateway.loses()
        wait_until(lambda: led.leads(100) and led.tree.epochs == [(100, 1), (100, 2)], "the next term")


def test_a_lost_session_ends_the_term(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateways(tmp_path, monkeypatch, 1, {}, **ONLY_WHEN_TOLD) as led:
        gateway = Led(led, monkeypatch)
        gateway.loses()
        gateway.heard[-1](KazooState.LOST)
        wait_until(lambda: led.leads(100) and led.tree.epochs == [(100, 1), (100, 2)], "the next term")
