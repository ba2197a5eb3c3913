"""A gateway's translation of decisions into the metadata log, in one process with the engine."""

import asyncio
from pathlib import Path

from bench.in_process import InProcess
from brokers.gateways.kraft.following.decision_feed import DecisionFeed
from brokers.gateways.kraft.log.storage import Storage
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.shared.read_watch import ReadWatch
from state.level import NEWEST_LEVEL

GATEWAY = 100
GATEWAY_LAYERS: dict[str, tuple[str, ...]] = {
    "gateway: decisions read": ("brokers.gateways.kraft.following.decision_feed:whole_events",),
    "gateway: decisions decoded": ("brokers.gateways.shared.whole_events:decoded",),
    "gateway: translated": ("brokers.gateways.kraft.log.storage:entry_of",),
    "gateway: records to bytes": ("brokers.gateways.kraft.log.storage:encode_entry",),
    "gateway: appended": ("brokers.gateways.kraft.log.storage:Storage.write",),
}


class GatewayInProcess:
    """The metadata log of a leading gateway, which is updated after each batch of ``engine``."""

    def __init__(self, folder: Path, engine: InProcess) -> None:
        (folder / "gateway").mkdir()
        self._storage = Storage(folder / "gateway")
        self._storage.begin(engine.bus)
        settings = Settings()
        watch = ReadWatch(settings.controller_quorum_fetch_timeout_ms / 1_000)
        # This gateway has no brokers and no requests, so no listener.
        self._feed = DecisionFeed(engine.bus, self._storage, lambda events: (), settings, watch)
        engine.followers.append(self._catch_up)
        started = {"gateway": GATEWAY, "incarnation": "g", "voters": [GATEWAY], "level": NEWEST_LEVEL}
        engine.play([engine.event("gateway_started", **started)])

    def _catch_up(self) -> None:
        asyncio.run(self._feed.catch_up())

    def close(self) -> None:
        self._storage.close()
