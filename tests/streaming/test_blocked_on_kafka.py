"""A stranger's open transaction on real Kafka: the engine names it and stays, and a standby does not take over."""

import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import pytest

from bus.kafka.bus import KafkaBus
from tests.support.engine import AWAITED, STANDBY, START_TIMEOUT_S, Engine, decided
from tests.support.open_transaction import Stranger
from tests.support.scrape import metrics_url, scrape
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka_bus]
SILENCE_MS = 3_000
NAMED = "events cannot be decided"


def asked(engine: Engine, path: str) -> tuple[int, list[str]]:
    """Return what the engine says of its health: the status, and the reasons."""
    try:
        with urllib.request.urlopen(metrics_url(engine.log).replace("/metrics", path), timeout=20) as answer:
            return answer.status, msgspec.json.decode(answer.read())["why"]
    except urllib.error.HTTPError as error:
        return error.code, msgspec.json.decode(error.read())["why"]


def test_a_strangers_transaction_is_named_until_it_ends_and_no_standby_takes_over(
    kafka_url: str, kafka_servers: str, tmp_path: Path
) -> None:
    bus, stranger = KafkaBus(kafka_url), Stranger(kafka_servers)
    sets = (f"bus={kafka_url}", "metrics.port=0", f"controller.standby.timeout.ms={SILENCE_MS}")
    engines = []
    for name, command in (("active", {}), ("standby", {"command": STANDBY})):
        (tmp_path / name).mkdir()
        engines.append(Engine(tmp_path / name, *sets, **command))
        if name == "active":
            engines[0].wait_ready(bus)
    active, standby = engines
    try:
        wait_until(lambda: "standing by" in standby.log.read_text(), "a standby", START_TIMEOUT_S)
        stranger.write(bus.address.events)
        behind = bus.publish([AWAITED])
        blocked_s = "isrflow_bus_blocked_seconds"
        wait_until(lambda: scrape(metrics_url(active.log))[blocked_s] > 3 * SILENCE_MS / 1000, "a long time")
        status, why = asked(active, "/readyz")
        assert (status, stranger.name in " ".join(why)) == (503, True)
        assert asked(active, "/healthz") == (200, [])
        assert active.log.read_text().count(NAMED) == 1
        stranger.producer.abort_transaction(20)
        decided(bus, behind, engine=active)
        wait_until(lambda: asked(active, "/readyz") == (200, []), "the engine to be ready again")
        again = "events can be decided again"
        wait_until(lambda: again in active.log.read_text(), "a line that says that it is over")
        assert bus.claimed_epoch() == 1
        assert (active.stop(), standby.stop()) == (0, 0)
    finally:
        for engine in engines:
            engine.kill()
        bus.close()
