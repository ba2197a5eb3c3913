"""A gateway sends brokers in ZooKeeper mode what a stock controller sends them, or the recording says why not.

The stories are played with simulated brokers in a real ZooKeeper. What a controller of Kafka 3.9.1 sent was recorded
by ``stock_requests/record.py``. ``ISRFLOW_REWRITE=1`` writes what the gateway sends, and leaves the reasons open.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.ports import free_ports
from bus.embedded import EmbeddedBus
from conf.jars import fetch
from tests.real_kafka.by_brokers import compared
from tests.real_kafka.stock_requests.leading import gateway
from tests.real_kafka.stock_requests.player import Player
from tests.real_kafka.stock_requests.record import told_in
from tests.real_kafka.stock_requests.recording import FOLDER, Kept, keep, kept_in, recording
from tests.real_kafka.stock_requests.stories import NAMES, root_in, story_named
from tests.scenarios.rendering import Rendering
from tests.scenarios.story import Block, Story, parse, path_of
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
REWRITE = os.environ.get("ISRFLOW_REWRITE") == "1"
OPEN = "WHY?"
_ALL = 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperProcess]:
    fetch("zookeeper-broker")
    [port] = free_ports(1)
    server = ZookeeperProcess(port, tmp_path_factory.mktemp("zookeeper"))
    server.start()
    try:
        server.wait_until_started()
        yield server
    finally:
        server.kill()


@pytest.mark.parametrize("name", NAMES)
def test_a_gateway_sends_what_is_kept(name: str, server: ZookeeperProcess, tmp_path: Path) -> None:
    story = recording(name)
    with root_in(server, name) as (address, client), gateway(address, tmp_path) as led:
        player = Player(client, led.port)
        try:
            if REWRITE:
                _rewrite(player, story)
            else:
                first, *others = story.blocks
                _play(player, first)
                # The first block sets the scene, which a story shows by its result.
                since = led.bus.decided_seq()
                for block in others:
                    _play(player, block)
                _check_decisions(name, led.bus, since)
                assert player.told() == "no request", "of a later block"
        finally:
            player.close()


def _play(player: Player, block: Block) -> None:
    wanted = kept_in(block).gateway
    player.do(block)
    with suppress(TimeoutError):
        wait_until(lambda: player.told() == wanted, "the requests")
    assert player.told() == wanted
    player.end_block()


def _rewrite(player: Player, story: Story) -> None:
    kept = []
    for block in story.blocks:
        former, told = kept_in(block), told_in(player, block)
        why = "" if told == former.stock else former.why or OPEN
        kept.append(Kept(former.stock, told, why))
    keep(story, kept)


def _check_decisions(name: str, bus: EmbeddedBus, since: int) -> None:
    """Wait until the decisions are those that the story has below its blocks, except for the first one.

    High watermarks are left out, because simulated brokers report no log ends.
    """
    story = parse(name, path_of(name).read_text("utf-8"))
    lines = [line for block in story.blocks[1:] for line in compared(block.expected)]
    written = [line for line in lines if " leader=" not in line and " hw " not in line]

    def decided() -> list[str]:
        rendering, shown = Rendering(), []
        for one in bus.decisions((0, _ALL), _ALL):
            told = rendering.tell(one.body, quiet=False)
            shown += told if one.seq > since else []
        return compared("\n".join(shown))

    with suppress(TimeoutError):
        wait_until(lambda: decided() == written, "the decisions")
    assert decided() == written


@pytest.mark.parametrize("name", NAMES)
def test_each_difference_is_one_and_has_a_reason(name: str) -> None:
    kept = [kept_in(block) for block in recording(name).blocks]
    assert [one for one in kept if one.why and (one.gateway == one.stock or one.why == OPEN)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_of_the_story_as_it_is(name: str) -> None:
    assert [block.lines for block in recording(name).blocks] == [block.lines for block in story_named(name).blocks]


def test_every_recording_is_played() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(name.replace("/", ".") for name in NAMES)
