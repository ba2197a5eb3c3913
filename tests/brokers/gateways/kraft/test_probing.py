"""A broker is dead if all its ports refuse; if a probe gets no answer in time, the session decides."""

import asyncio
import errno
import socket

import pytest
from msgspec.structs import replace

from brokers.gateways.kraft import probing
from brokers.gateways.kraft.following.quorum_view import BrokerView, QuorumView
from brokers.gateways.kraft.metadata.image import Registration
from brokers.gateways.shared.file_settings import Asked
from brokers.launch.ports import free_ports
from brokers.wire.server import Peer
from state.decisions import BrokerDecision
from state.events import BrokerConnectionLost
from state.reason import Reason

LOOPBACK, OTHER_ADDRESS = "127.0.0.1", "127.0.0.2"


def test_a_broker_is_gone_when_all_its_ports_refuse_and_not_just_one() -> None:
    [closed] = free_ports(1)
    with socket.create_server((LOOPBACK, 0)) as open_one:
        opened = open_one.getsockname()[1]
        assert asyncio.run(probing.is_refused([(LOOPBACK, closed)]))
        assert not asyncio.run(probing.is_refused([(LOOPBACK, closed), (LOOPBACK, opened)]))
    assert not asyncio.run(probing.is_refused([]))


def resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Give every host these addresses."""

    def getaddrinfo(host: str, port: int, *given: object, **more: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_a_port_must_refuse_at_every_address_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    [closed] = free_ports(1)
    resolve(monkeypatch, LOOPBACK, OTHER_ADDRESS)
    assert asyncio.run(probing.is_refused([("both.example", closed)]))
    for address in (LOOPBACK, OTHER_ADDRESS):
        with socket.create_server((address, closed)):
            assert not asyncio.run(probing.is_refused([("both.example", closed)]))


@pytest.mark.parametrize(
    ("codes", "is_refused"),
    [
        ((errno.ECONNREFUSED, errno.EADDRNOTAVAIL), True),
        ((errno.ENETUNREACH, errno.ECONNREFUSED), True),
        ((errno.EAFNOSUPPORT, errno.ECONNREFUSED), True),
        ((errno.ENETUNREACH, errno.EADDRNOTAVAIL), False),
        ((errno.ECONNREFUSED, errno.EHOSTUNREACH), False),
    ],
)
def test_an_address_that_this_machine_cannot_reach_does_not_count(
    monkeypatch: pytest.MonkeyPatch, codes: tuple[int, int], is_refused: bool
) -> None:
    found = dict(zip((LOOPBACK, OTHER_ADDRESS), codes, strict=True))

    async def connect(host: str, port: int) -> None:
        raise OSError(found[host], "it failed")

    resolve(monkeypatch, *found)
    monkeypatch.setattr(asyncio, "open_connection", connect)
    assert asyncio.run(probing.is_refused([("both.example", 1)])) == is_refused


def test_a_host_that_cannot_be_looked_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not asyncio.run(probing.is_refused([("kafka-0..svc", 1)]))

    def unknown(*given: object, **more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert not asyncio.run(probing.is_refused([("nowhere.example", 1)]))


REGISTRATION = Registration(1, 7, "i", (), (), None, (), fenced=False, in_controlled_shutdown=False)


Reports = list[BrokerConnectionLost]


def probes_of(
    reports: Reports, port: int, peer: Peer | None = None, state: str = "active", leads: bool = True
) -> probing.Probes:
    """Return the probes of a gateway that knows broker 1, which listens on ``port``."""
    quorum_view = QuorumView(100, "mine", lambda broker, epoch, offset: None)
    decision = BrokerDecision(
        seq=1,
        controller_epoch=1,
        time_ms=1,
        reason=Reason.BROKER_UNFENCED,
        broker=1,
        broker_epoch=7,
        incarnation="i",
        state=state,
        rack=None,
        listeners=(),
    )
    quorum_view.apply([decision], 1)
    quorum_view.leads = leads
    if peer is not None:
        quorum_view.connected(1, peer)
    registered = replace(REGISTRATION, endpoints=(("L", LOOPBACK, port, 0),))
    return probing.Probes(quorum_view, {1: registered}.get, reports.append)


def probed(port: int, peer: Peer | None = None, state: str = "active", leads: bool = True) -> Reports:
    """Probe broker 1, which listens on ``port``, until all probes are over; return the events that were reported."""
    reports: Reports = []

    async def scene() -> None:
        probes = probes_of(reports, port, peer, state, leads)
        for _ in range(2):
            probes.begin(1)
        probes.begin(2)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(scene())
    return reports


def test_a_broker_that_stopped_listening_is_reported_once() -> None:
    [closed] = free_ports(1)
    [lost] = probed(closed)
    assert (lost.broker, lost.broker_epoch) == (1, 7)


def test_nothing_is_reported_about_a_broker_that_may_be_alive() -> None:
    [closed] = free_ports(1)
    with socket.create_server((LOOPBACK, 0)) as listening:
        assert probed(listening.getsockname()[1]) == []
    assert probed(closed, peer=Peer()) == [], "its heartbeats come on an open connection"
    assert probed(closed, state="fenced") == [], "it starts, and does not listen yet"
    assert probed(closed, leads=False) == [], "another gateway hears it"


def test_a_host_that_does_not_answer_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = silent_hosts(monkeypatch)
    assert not asyncio.run(probing.is_refused([(LOOPBACK, 1), (LOOPBACK, 2)]))
    assert begun == [1]


def test_no_probe_is_left_of_a_gateway_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, reports = silent_hosts(monkeypatch), Reports()

    async def scene() -> None:
        probes = probes_of(reports, port=1)
        probes.begin(1)
        while not begun:
            await asyncio.sleep(0)
        await probes.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scene())
    assert reports == []


def silent_hosts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have no host answer, and return the ports that are tried."""
    begun = []

    async def never(host: str, port: int) -> None:
        begun.append(port)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    return begun


def test_brokers_that_have_served_are_asked_where_they_listen_in_plain_text() -> None:
    view = QuorumView(100, "mine", lambda broker, epoch, offset: None)
    view.leads = True
    for number in (1, 2, 3):
        view.brokers[number] = BrokerView(10 + number, "fenced", 0, has_served=number != 3)
    secret, plain = ("S", LOOPBACK, 1, 3), ("P", LOOPBACK, 2, 0)
    registered = {1: replace(REGISTRATION, endpoints=(secret, plain)), 2: replace(REGISTRATION, endpoints=(secret,))}
    found = list(probing.serving(view, registered.get))
    assert found == [Asked(1, 11, (LOOPBACK, 2)), Asked(2, 12, None)]
    view.leads = False
    assert list(probing.serving(view, registered.get)) == []
