"""Settings of topics that brokers behind gateways could not read are refused, as by Kafka's own controller."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from bus.embedded import EmbeddedBus
from bus.interface import Page
from state.broker import BrokerState
from state.cluster import Cluster
from state.features import METADATA_VERSION, METADATA_VERSIONS
from state.metadata_quorum import Gateway
from state.registration import Feature
from state.stored.codec import encode_cluster
from tests.cli.conftest import Isrflow, broker

TELLING_NONE: tuple[Feature, ...] = ()


def of_release(release: str) -> tuple[Feature, ...]:
    return (Feature(METADATA_VERSION, 7, METADATA_VERSIONS[release]),)


@pytest.fixture
def led(tmp_path: Path) -> EmbeddedBus:
    return EmbeddedBus(tmp_path / "data" / "bus.db")


def put(bus: EmbeddedBus, *features: tuple[Feature, ...], is_kraft: bool = True, has_gateway: bool = True) -> None:
    """Commit a state with a broker for each of ``features``. Those in ZooKeeper mode are not behind their gateway."""
    brokers = {
        number: replace(broker(number, BrokerState.active), is_kraft=is_kraft, features=its)
        for number, its in enumerate(features, start=1)
    }
    claim = bus.claim("test", {}, 1_000)
    gateways = {100: Gateway(100, "i", (100,), 1_000)} if has_gateway else {}
    cluster = Cluster(seq=bus.last_seq(), clock_ms=1_000, controller_epoch=1, brokers=brokers, gateways=gateways)
    bus.commit(claim.controller_epoch, bus.last_seq(), [], [Page(0, -1, encode_cluster(cluster))])


@pytest.mark.parametrize("command", ["create", "alter"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("retention.ms=abc", "retention.ms: 'abc' is not an integer"),
        ("cleanup.policy=nonsense", "cleanup.policy: 'nonsense' has items other than compact, delete"),
        ("retention.mss=1", "retention.mss is not a topic setting; did you mean 'retention.ms'?"),
        ("message.format.version=3.0", "message.format.version is not a topic setting"),
    ],
)
def test_a_setting_that_a_broker_behind_a_gateway_cannot_read_is_refused(
    isrflow: Isrflow, led: EmbeddedBus, command: str, given: str, said: str
) -> None:
    put(led, of_release("4.0"), of_release("4.1"))
    last = led.last_seq()
    done = isrflow("topics", command, "orders", "--config", "min.insync.replicas=1", "--config", given)
    assert (done.exit_code, done.stderr.startswith(f"Error: INVALID_CONFIG: {said}")) == (1, True), done.output
    assert led.last_seq() == last, "the engine was not asked"


def test_what_is_a_setting_depends_on_the_brokers(isrflow: Isrflow, led: EmbeddedBus) -> None:
    create = ("topics", "create", "orders", "--dry-run", "--config", "message.format.version=3.0")
    put(led, TELLING_NONE, is_kraft=False)
    assert isrflow(*create).exit_code == 0
    put(led, of_release("4.0"))
    assert isrflow(*create).exit_code == 1
    # Mock brokers read what they know, and leave the rest.
    put(led, TELLING_NONE, is_kraft=False, has_gateway=False)
    assert isrflow("topics", "create", "orders", "--dry-run", "--config", "mine=1").exit_code == 0
