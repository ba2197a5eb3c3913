"""The metrics of a gateway and of a mock broker."""

import socket
import struct
from pathlib import Path

import pytest

from brokers.gateways.shared import metrics as gateway_metrics
from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.mock import metrics as mock_metrics
from brokers.mock.broker import Broker
from brokers.mock.metrics import BrokerMeasures
from brokers.mock.settings import Identity, settings_of
from brokers.process.given_settings import NO_PORT
from brokers.process.metrics import OwnMetrics, served
from bus.embedded import EmbeddedBus
from conf.security.authority import Authority
from conf.security.exposure import Protection
from conf.security.tls import TlsFiles, client_contexts, server_context
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.scrape import scrape
from tests.support.waiting import wait_until


def scraped(metrics: OwnMetrics[GatewayMeasures] | OwnMetrics[BrokerMeasures]) -> dict[str, float]:
    with served(metrics, "127.0.0.1", 0) as port:
        return scrape(f"http://127.0.0.1:{port}/metrics")


def test_what_is_measured_is_served_at_each_scrape() -> None:
    epochs = iter((3, 4))
    metrics = OwnMetrics(
        gateway_metrics.SERIES,
        lambda: GatewayMeasures(gateway=100, leads=True, quorum_epoch=next(epochs), brokers={"active": 2}),
    )
    with served(metrics, "127.0.0.1", 0) as port:
        first, second = (scrape(f"http://127.0.0.1:{port}/metrics") for _ in range(2))
        with pytest.raises(OSError), served(metrics, "127.0.0.1", port or 0):
            pass
    assert (first["isrflow_gateway_quorum_epoch"], second["isrflow_gateway_quorum_epoch"]) == (3, 4)
    assert first["isrflow_gateway_brokers{state=active}"] == 2
    assert first["isrflow_gateway_brokers{state=fenced}"] == 0, "known states are there from the start"
    with served(metrics, "127.0.0.1", NO_PORT) as none:
        assert none is None


def test_a_gateway_measures_itself(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    try:
        client = quorum.client()
        quorum.join(client, 1)
        client.close()
        gateway = quorum.gateways[100].gateway
        metrics = OwnMetrics(gateway_metrics.SERIES, gateway.measures)
        wait_until(lambda: scraped(metrics)["isrflow_gateway_brokers{state=active}"] == 1, "an active broker")
        seen = scraped(metrics)
        assert seen["isrflow_gateway_info{gateway=100}"] == seen["isrflow_gateway_leads"] == 1
        assert seen["isrflow_gateway_serving"] == 1
        assert seen["isrflow_gateway_log_end_offset"] > seen["isrflow_gateway_log_start_offset"]
        assert seen["isrflow_gateway_broker_lag_max"] > 0, "the broker has fetched nothing yet"
        assert seen["isrflow_gateway_cut_off"] == seen["isrflow_gateway_blind"] == 0
    finally:
        quorum.stop()


def test_a_mock_broker_measures_itself_before_it_has_registered(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    try:
        identity = Identity(broker=3, bus=tmp_path / "bus.db", directory=tmp_path / "broker-3")
        broker = Broker(identity, settings_of({}), bus)
        (identity.directory / "t-0.id-stray").mkdir()
        seen = scraped(OwnMetrics(mock_metrics.SERIES, broker.measures))
        assert seen["isrflow_mock_broker_info{broker=3}"] == 1
        assert (seen["isrflow_mock_broker_epoch"], seen["isrflow_mock_broker_led_partitions"]) == (-1, 0)
        assert seen["isrflow_mock_broker_stray_logs"] == 1
    finally:
        bus.close()


def test_scrapers_that_leave_at_once_give_their_places_back(tmp_path: Path) -> None:
    """Some reset their connection before the server wraps it in TLS."""
    authority = Authority(tmp_path / "ca")
    keystore = TlsFiles(keystore=str(authority.issue("gateway")))
    metrics = OwnMetrics(gateway_metrics.SERIES, lambda: GatewayMeasures(gateway=100, leads=True, quorum_epoch=3))
    tls = client_contexts(TlsFiles(truststore=str(authority.certificate_file)))()
    with served(metrics, "127.0.0.1", 0, Protection(None, server_context(keystore))) as port:
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", port)) as leaving:
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        def is_served() -> bool:
            try:
                with socket.create_connection(("127.0.0.1", port)) as plain:
                    tls.wrap_socket(plain, server_hostname="127.0.0.1").close()
            except OSError:
                return False
            return True

        wait_until(is_served, "a place for a scraper", 30)
