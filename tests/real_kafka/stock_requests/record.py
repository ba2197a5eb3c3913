"""Record what a stock controller of Kafka 3.9.1 sends: ``python -m tests.real_kafka.stock_requests.record [STORY]...``.

Without a name it plays all stories. A block is over when nothing has come for a while.
"""

import sys
import tempfile
import time
from pathlib import Path

from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.ports import free_ports
from conf.jars import fetch
from tests.real_kafka.stock_requests.leading import stock_controller
from tests.real_kafka.stock_requests.player import Player
from tests.real_kafka.stock_requests.recording import Kept, keep, kept_in, recording, recording_path
from tests.real_kafka.stock_requests.stories import NAMES, root_in, story_named
from tests.scenarios.story import Block

QUIET_S = 2.0
POLL_S = 0.1


def main(*names: str) -> None:
    fetch("zookeeper-broker")
    with tempfile.TemporaryDirectory(prefix="isrflow-record-") as folder:
        server = ZookeeperProcess(free_ports(1)[0], Path(folder) / "zookeeper")
        server.start()
        try:
            server.wait_until_started()
            for name in names or NAMES:
                _record(name, server, Path(folder))
                print(name, flush=True)
        finally:
            server.kill()


def _record(name: str, server: ZookeeperProcess, folder: Path) -> None:
    story = story_named(name)
    with root_in(server, name) as (address, client), stock_controller(address, folder / name) as port:
        player = Player(client, port)
        try:
            told = [told_in(player, block) for block in story.blocks]
        finally:
            player.close()
    former = [kept_in(block) for block in recording(name).blocks] if recording_path(name).exists() else []
    differ = [(one.gateway, one.why) if one.why else None for one in former] or [None] * len(told)
    keep(story, [Kept(text, *(other or (text, ""))) for text, other in zip(told, differ, strict=True)])


def told_in(player: Player, block: Block) -> str:
    """Play a block, and return the requests that come until nothing has come for a while."""
    player.do(block)
    count, since = player.count(), time.monotonic()
    while time.monotonic() - since < QUIET_S:
        time.sleep(POLL_S)
        if player.count() != count:
            count, since = player.count(), time.monotonic()
    told = player.told()
    player.end_block()
    return told


if __name__ == "__main__":
    main(*sys.argv[1:])
