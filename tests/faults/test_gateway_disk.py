"""A gateway whose disk is full or read-only ends and another leads; it comes back whole once it can write again."""

import filecmp
from pathlib import Path

import pytest

from brokers.gateways.kraft.log.segment import SUFFIX
from tests.faults.disks import small_disk
from tests.support.engine import decided, encoded
from tests.support.gateway_in_process import GatewayThread, InProcessQuorum
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kraft
QUICK = {"gateway_heartbeat_interval_ms": 50}
TOPICS = 200
HURT, OTHER = 100, 101


def create_topics(quorum: InProcessQuorum, prefix: str) -> None:
    """Create topics until the metadata log outgrows the disk's last free block."""
    wanted = [
        encoded("create_topic", topic=f"{prefix}-{'x' * 200}-{number}", partitions=3, replication_factor=1)
        for number in range(TOPICS)
    ]
    decided(quorum.bus, quorum.bus.publish(wanted))


def assert_ended_by_its_disk(gateway: GatewayThread) -> None:
    wait_until(lambda: gateway.has_ended, "the gateway to end")
    with pytest.raises(BaseExceptionGroup) as ended:
        gateway.stop()
    assert ended.group_contains(OSError, match="No space")


def are_alike(directory: Path) -> bool:
    """Return whether both gateways have the same metadata log, byte by byte."""
    ours, theirs = (sorted((directory / f"gateway-{one}").rglob(f"*{SUFFIX}")) for one in (HURT, OTHER))
    assert theirs != []
    same_names = [path.name for path in ours] == [path.name for path in theirs]
    return same_names and all(filecmp.cmp(a, b, shallow=False) for a, b in zip(ours, theirs, strict=True))


def test_another_gateway_leads_until_there_is_room_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / f"gateway-{HURT}", mib=16) as disk:
        quorum = InProcessQuorum(tmp_path, 2, **QUICK)
        try:
            registered = quorum.bus.publish([encoded("broker_register", broker=1, incarnation="a")])
            beat = {"broker": 1, "broker_epoch": registered, "want_fence": False, "want_shutdown": False}
            decided(quorum.bus, quorum.bus.publish([encoded("broker_heartbeat", **beat)]))
            assert quorum.state.voter == HURT
            create_topics(quorum, "before")
            disk.fill()
            create_topics(quorum, "during")
            assert_ended_by_its_disk(quorum.gateways.pop(HURT))
            wait_until(lambda: quorum.state.voter == OTHER, "the other gateway to lead")
            disk.free()
            disk.read_only(True)
            with pytest.raises(OSError, match="Read-only"):
                quorum.start(HURT)
            disk.read_only(False)
            quorum.start(HURT)
            create_topics(quorum, "after")
            wait_until(lambda: are_alike(tmp_path), "both to hold the same log")
        finally:
            quorum.stop()
