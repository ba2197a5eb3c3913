"""Stories give the same decisions with brokers in ZooKeeper mode, and whatever happens their requests obey some laws.

Brokers are simulated, and ZooKeeper is real. What a broker was told last of each partition is what was decided.
"""

from pathlib import Path

import pytest

from brokers.launch.kafka.zookeeper import ZookeeperProcess
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from tests.real_kafka.stock_requests.deciding import Decided, chapters
from tests.real_kafka.stock_requests.laws import Known, Place, runs_of
from tests.real_kafka.stock_requests.leading import CONTROLLER, gateway
from tests.real_kafka.stock_requests.player import Player
from tests.real_kafka.stock_requests.stories import DECIDED_ALIKE, root_in
from tests.scenarios.story import all_stories
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(600)]


def decided_now(bus: EmbeddedBus) -> dict[Place, Known]:
    view = view_of_image(bus.image())
    going = {held["topic"] for held in view["topics"] if held["state"] != "created"}
    return {
        (held["topic"], held["partition"]): (
            held["leader"],
            held["leader_epoch"],
            tuple(sorted(held["isr"])),
            tuple(held["replicas"]),
        )
        for held in view["partitions"]
        if held["topic"] not in going
    }


def wait_until_all_know(player: Player, bus: EmbeddedBus) -> None:
    """Wait until the metadata of each broker that lives are those decided."""

    def all_know() -> bool:
        decided = decided_now(bus)
        runs = [runs_of(number, heard, CONTROLLER)[-1] for number, heard in player.heard(of_living=True).items()]
        return all(run.metadata == decided for run in runs)

    wait_until(all_know, "brokers to know what was decided")


@pytest.mark.parametrize("name", DECIDED_ALIKE)
def test_the_rules_decide_as_written_and_brokers_are_told_so(
    name: str, zookeeper: ZookeeperProcess, tmp_path: Path
) -> None:
    [story] = [one for one in all_stories() if one.name == name]
    with root_in(zookeeper, f"{name}-decided") as (address, client), gateway(address, tmp_path) as led:
        player = Player(client, led.port)
        try:
            (first, _), *others = chapters(story)
            player.do(first)
            wait_until_all_know(player, led.bus)
            decided, written = Decided(led.bus), list[str]()
            for block, lines in others:
                player.do(block)
                written += lines
                decided.check(written)
                # The next block may begin with what stands in ZooKeeper.
                wait_until_all_know(player, led.bus)
            runs = [run for number, heard in player.heard().items() for run in runs_of(number, heard, CONTROLLER)]
            assert [wrong for run in runs for wrong in run.wrong] == []
        finally:
            player.close()
