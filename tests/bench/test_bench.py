"""Each driver still plays its steps, with a hundred partitions, and the report can be written and read.

The rules in a thread stand in for the engine, because they start at once.
"""

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bench import breakdown, protocol_driver, shadow, sustained, zookeeper_driver
from bench.bus_driver import BusDriver
from bench.controllers import EngineBehindGateway, StockController
from bench.gateway_in_process import GATEWAY_LAYERS
from bench.layers import Layers
from bench.load import Driver, Load, Took
from bench.machine import machine
from bench.play import rounds
from bench.protocol_driver import ProtocolDriver
from bench.report import Figure, Report, table, write
from bench.zookeeper_controllers import EngineInZookeeper
from bench.zookeeper_driver import ZookeeperDriver
from bus.image import read_image
from tests.support.rules_engine import RulesEngine

PARTITIONS = 100
# Sessions are short enough to wait for, and long enough that a slow machine fences no other broker.
LOAD = Load(partitions=PARTITIONS, brokers=5, session_ms=6_000, heartbeat_ms=500, idle_s=0.1, quiet_s=0.7)
# Three of five brokers have a replica of each partition.
ON_A_BROKER = PARTITIONS * 3 // 5


def rules_on(bus: Path) -> RulesEngine:
    rules = RulesEngine()
    rules.start(bus, auto_leader_rebalance_enable=False, broker_session_timeout_ms=LOAD.session_ms)
    return rules


class RulesOnBus(BusDriver):
    def start_engine(self) -> None:
        self._rules = rules_on(self.bus.path)

    def kill_engine(self) -> None:
        self._rules.stop()


class RulesBehindGateway(EngineBehindGateway):
    def start_engine(self) -> None:
        self._rules = rules_on(self.bus_path)

    def stop(self) -> None:
        super().stop()
        self._rules.stop()


class RulesInZookeeper(EngineInZookeeper):
    def start_engine(self) -> None:
        self._rules = rules_on(self.bus_path)

    def stop(self) -> None:
        super().stop()
        self._rules.stop()


def engine(folder: Path, load: Load) -> Driver:
    return RulesOnBus(folder, load, [])


def peer(folder: Path, load: Load) -> Driver:
    return ProtocolDriver(StockController(folder, load.session_ms), load)


def gateway(folder: Path, load: Load) -> Driver:
    return ProtocolDriver(RulesBehindGateway(folder, []), load)


def zookeeper_gateway(folder: Path, load: Load) -> Driver:
    return ZookeeperDriver(RulesInZookeeper(folder, []), load)


def played(name: str, load: Load) -> dict[str, Figure]:
    make = {"engine": engine, "peer": peer, "gateway": gateway, "zookeeper-gateway": zookeeper_gateway}[name]
    return {figure.step: figure for figure in rounds([load], {name: make}, 1, settle_s=0)}


@pytest.mark.mock_brokers
@pytest.mark.parametrize("name", ["engine", "peer", "gateway"])
def test_a_load_changes_as_many_partitions_under_every_controller(name: str) -> None:
    figures = played(name, LOAD)
    changes = {step: figure.changes for step, figure in figures.items()}
    assert changes["create"] == PARTITIONS
    assert changes["lose"] == ON_A_BROKER
    assert 0 < changes["shrink ISRs"] == changes["expand ISRs"] < ON_A_BROKER
    assert 0 < changes["fence"] <= ON_A_BROKER
    assert 0 < changes["shut down"] <= ON_A_BROKER
    assert all(one.wall_s >= 0 and one.cpu_s >= 0 for figure in figures.values() for one in figure.rounds)


@pytest.mark.mock_brokers
def test_a_load_is_played_on_brokers_in_zookeeper_mode() -> None:
    changes = {step: figure.changes for step, figure in played("zookeeper-gateway", LOAD).items()}
    assert list(changes) == [
        *("create", "shrink ISRs", "expand ISRs", "one ISR", "lose", "return after lose", "shut down", "restart")
    ]
    assert changes["create"] == changes["restart"] == PARTITIONS
    assert changes["lose"] == changes["return after lose"] == ON_A_BROKER
    assert 0 < changes["shrink ISRs"] == changes["expand ISRs"] < ON_A_BROKER


def test_replicas_are_placed_at_random_alike_under_every_controller(tmp_path: Path) -> None:
    load = replace(LOAD, placement="random")
    driver = RulesOnBus(tmp_path, load, [])
    driver.start()
    try:
        assert driver.play("create").changes == PARTITIONS
        [topic] = read_image(driver.bus.image()).topics
    finally:
        driver.stop()
    [asked] = next(protocol_driver.requests(load))
    [asked_in_zookeeper] = next(zookeeper_driver.requests(load))
    assert asked["Assignments"] == asked_in_zookeeper["Assignments"]
    lists = [one["BrokerIds"] for one in asked["Assignments"]]
    assert [partition.replicas for partition in topic.partitions] == lists == load.assignment("t0", PARTITIONS)
    # There are sixty lists. In turn, neighbours would have five.
    assert len(set(lists)) > 30


def test_a_benchmark_plays_every_size_on_every_number_of_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--partitions", "50,100", "--brokers", "5,7", "--placement", "random", "--runs", "1", "--eligible")
    breakdown.main(*given)
    shown = capsys.readouterr().out
    wanted = [(size, brokers, on) for size in ("50", "100") for brokers in ("5", "7") for on in ("off", "on")]
    for size, brokers, on in wanted:
        eligible = ", eligible leader replicas" if on == "on" else ""
        assert f"in process, {size} partitions, {brokers} brokers, random placement{eligible}:" in shown
    rows = shown[shown.index("µs of CPU a decision") :].splitlines()[4:]
    assert [tuple(row[2:].split(" | ")[:3]) for row in rows] == wanted


def test_watermarks_follow_a_steady_rate_of_reports() -> None:
    rate = 600

    def make(folder: Path) -> RulesOnBus:
        return RulesOnBus(folder, LOAD, [])

    whole, delays = sustained.measure(make, LOAD, rate, seconds=1.0)
    # 100 partitions have 300 replicas. The slices have 50 partitions, because they last a quarter of a second.
    assert whole.changes == len(delays.rounds) * 150 == rate
    assert all(one.wall_s > 0 for one in delays.rounds)


def test_a_backlog_grew_if_its_lowest_value_rose_by_more_than_a_second_s_reports() -> None:
    sawtooth = [(float(second), 10 * (second % 3)) for second in range(30)]
    rising = [(second, backlog + 20 * int(second)) for second, backlog in sawtooth]
    assert sustained.lows(sawtooth) == [0, 0, 0]
    assert sustained.lows(rising) == [0, 210, 420]
    assert not sustained.grew(sustained.Followed([], [0, 210, 420], 30.0), rate=420)
    assert sustained.grew(sustained.Followed([], [0, 210, 420], 30.0), rate=419)


def test_the_time_of_every_layer_of_the_engine_is_measured() -> None:
    """A layer whose function was renamed raises an error, and a layer that nothing calls any more has no time."""
    costs = breakdown.run_once(Load(partitions=PARTITIONS), shards=2, pages=4, gateway=True)
    assert [cost.step for cost in costs] == list(breakdown.STEPS)
    spent = sum((Counter(cost.layers_s) for cost in costs), Counter[str]())
    assert [layer for layer in breakdown.LAYERS | GATEWAY_LAYERS if not spent[layer]] == []
    lost = next(cost for cost in costs if cost.step == "lose a broker")
    assert lost.decisions >= PARTITIONS * 3 // 10


def test_a_layer_that_is_gone_is_named() -> None:
    layers = Layers({"rules": ("controller_logic.guard:no_such_function",)})
    with pytest.raises(LookupError, match="rules"), layers.measured():
        pass


def test_a_report_is_written_with_its_table(tmp_path: Path) -> None:
    one = Took(wall_s=2.0, cpu_s=1.0, changes=100, session_end_s=2.5)
    report = Report("2026-01-01 10:00", "make bench", machine(), 1.0, [Figure("peer", 100, "lose", [one, one], 10)])
    assert "| 100 | 10 | lose | peer | 2.00 | 1.00 | 0.50 | 100 | 50 | 2.50 | 2.00 |  |" in list(table(report))
    path = write(report, tmp_path)
    assert msgspec.json.decode(path.read_bytes(), type=Report) == report
    assert path.with_suffix(".md").exists()


def test_the_log_of_an_observed_cluster_is_read_and_audited() -> None:
    figures = {figure.step: figure for figure in shadow.measure(PARTITIONS, brokers=5)}
    on_a_broker = figures["shadow read"].changes - 2 * PARTITIONS
    assert on_a_broker == figures["of it: adopt and audit"].changes - 2 * PARTITIONS > PARTITIONS // 2
    assert figures["tell every operation"].changes == PARTITIONS + 1 + 1 + 4, "shrinks, a fence, a return, expansions"
    assert all((figure.peak_mib or 0) > 0 for step, figure in figures.items() if not step.startswith("of it"))
