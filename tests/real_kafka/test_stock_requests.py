"""A gateway sends brokers in ZooKeeper mode what a stock controller sends them, or the recording says why not.

The stories are played with simulated brokers in a real ZooKeeper. What a controller of Kafka 3.9.1 sent was recorded
by ``stock_requests/record.py``. ``ISRFLOW_REWRITE=1`` writes what the gateway sends, and leaves the reasons open.
"""

import os
from pathlib import Path

import pytest

from brokers.launch.kafka.zookeeper import ZookeeperProcess
from tests.real_kafka.stock_requests.deciding import Decided, written_in
from tests.real_kafka.stock_requests.leading import gateway
from tests.real_kafka.stock_requests.player import Player
from tests.real_kafka.stock_requests.record import told_in
from tests.real_kafka.stock_requests.recording import FOLDER, Kept, keep, kept_in, recording
from tests.real_kafka.stock_requests.stories import NAMES, root_in, story_named
from tests.scenarios.story import Block, Story, parse, path_of
from tests.support.waiting import wait_until_equal

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(600)]
REWRITE = os.environ.get("ISRFLOW_REWRITE") == "1"
OPEN = "WHY?"


@pytest.mark.parametrize("name", NAMES)
def test_a_gateway_sends_what_is_kept(name: str, zookeeper: ZookeeperProcess, tmp_path: Path) -> None:
    story = recording(name)
    with root_in(zookeeper, name) as (address, client), gateway(address, tmp_path) as led:
        player = Player(client, led.port)
        try:
            if REWRITE:
                _rewrite(player, story)
            else:
                first, *others = story.blocks
                _play(player, first)
                # The first block sets the scene, and the recording leaves its requests out.
                decided = Decided(led.bus)
                for block in others:
                    _play(player, block)
                decided.check(written_in(parse(name, path_of(name).read_text("utf-8")).blocks[1:]))
                assert player.told() == "no request", "of a later block"
        finally:
            player.close()


def _play(player: Player, block: Block) -> None:
    wanted = kept_in(block).gateway
    player.do(block)
    wait_until_equal(player.told, wanted, "the requests")
    player.end_block()


def _rewrite(player: Player, story: Story) -> None:
    kept = []
    for block in story.blocks:
        former, told = kept_in(block), told_in(player, block)
        why = "" if told == former.stock else former.why or OPEN
        kept.append(Kept(former.stock, told, why))
    keep(story, kept)


@pytest.mark.parametrize("name", NAMES)
def test_each_difference_is_one_and_has_a_reason(name: str) -> None:
    kept = [kept_in(block) for block in recording(name).blocks]
    assert [one for one in kept if one.why and (one.gateway == one.stock or one.why == OPEN)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_of_the_story_as_it_is(name: str) -> None:
    assert [block.lines for block in recording(name).blocks] == [block.lines for block in story_named(name).blocks]


def test_every_recording_is_played() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(name.replace("/", ".") for name in NAMES)
