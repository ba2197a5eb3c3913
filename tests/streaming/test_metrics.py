"""A running engine is scraped, and shows its decisions."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.engine import decided, encoded, running_engine
from tests.support.scrape import metrics_url, scrape
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.spark


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_running_engine_is_scraped(tmp_path: Path) -> None:
    with running_engine(tmp_path, "metrics.port=0", "min.insync.replicas=2") as bus:
        url = metrics_url(tmp_path / "engine.log")
        epochs = {b: bus.publish([encoded("broker_register", broker=b, incarnation=f"i{b}")]) for b in (1, 2, 3)}
        beats = [
            encoded("broker_heartbeat", broker=b, broker_epoch=epoch, want_fence=False, want_shutdown=False)
            for b, epoch in epochs.items()
        ]
        bus.publish(beats)
        bus.publish([encoded("create_topic", topic="orders", partitions=4, replication_factor=3)])
        bus.publish(
            [
                b"no event",
                encoded("broker_heartbeat", broker=3, broker_epoch=epochs[3], want_fence=True, want_shutdown=False),
            ]
        )
        decided(bus, bus.last_seq())
        wait_until(lambda: scrape(url).get("isrflow_brokers{state=fenced}") == 1, "the batch in the metrics")
        wait_until(lambda: scrape(url)["isrflow_batch_duration_seconds_count"] > 1, "Spark's word of two batches")
        seen = scrape(url)
        address = url.removesuffix("/metrics")
        found = [status(address + path) for path in ("/readyz", "/standbyz", "/healthz", "/", "/foo")]
        assert found == [200, 200, 200, 200, 404]
        why = f"{address}/page/partition?topic=orders&partition=0"
        with urllib.request.urlopen(why, timeout=TIMEOUT_S) as answer:
            assert b"Topic orders was created." in answer.read()
    kafka = "kafka_controller_kafkacontroller_"
    assert seen[f"{kafka}activecontrollercount"] == 1
    assert seen[f"{kafka}activebrokercount"] == 2
    assert seen[f"{kafka}globalpartitioncount"] == 4
    assert seen[f"{kafka}offlinepartitionscount"] == 0
    assert seen["kafka_server_replicamanager_underreplicatedpartitions"] == 4
    assert seen["kafka_server_replicamanager_atminisrpartitioncount"] == 4
    assert seen["isrflow_decisions_total{kind=rejected}{reason=MALFORMED}"] == 1
    assert seen["isrflow_decision_delay_seconds_count"] > 8
    assert seen["isrflow_process_memory_bytes{process=jvm}"] > 0
    assert seen["isrflow_bus_bytes"] > 0
