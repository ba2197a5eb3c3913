"""The fetchers of a broker, one for each leader that it follows."""

import asyncio
from collections.abc import Callable

from brokers.mock.metadata import Metadata
from brokers.mock.replicas.fetcher import Fetcher
from brokers.mock.replicas.partition import Partition
from brokers.mock.settings import Settings
from state.events import TopicPartition

LogEndChanged = Callable[[Partition], None]


class Fetchers:
    """The fetchers by leader. A followed partition is with the fetcher of its leader only."""

    def __init__(self, broker: int, metadata: Metadata, settings: Settings, log_end_changed: LogEndChanged) -> None:
        self._broker = broker
        self._metadata = metadata
        self._settings = settings
        self._log_end_changed = log_end_changed
        self._fetchers: dict[int, Fetcher] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.broker_epoch = -1

    def set_broker_epoch(self, broker_epoch: int) -> None:
        """Fetch under this registration from now on, because only the present one may join an ISR (KIP-903)."""
        self.broker_epoch = broker_epoch
        for fetcher in self._fetchers.values():
            fetcher.broker_epoch = broker_epoch

    def add(self, partition: Partition) -> None:
        """Follow ``partition.leader`` in the partition's present leader epoch."""
        fetcher = self._fetchers.get(partition.leader)
        if fetcher is None:
            fetcher = Fetcher(self._broker, partition.leader, self._metadata, self._settings, self._log_end_changed)
            self._fetchers[partition.leader] = fetcher
            self._tasks[partition.leader] = asyncio.create_task(fetcher.run(), name=f"fetcher-{partition.leader}")
        fetcher.broker_epoch = self.broker_epoch
        fetcher.add(partition)

    def remove(self, partition: Partition) -> None:
        """Stop fetching the partition, from whichever leader."""
        for leader, fetcher in list(self._fetchers.items()):
            fetcher.remove(partition.place)
            if fetcher.idle:
                self._tasks.pop(leader).cancel()
                del self._fetchers[leader]

    def leader_epochs(self, place: TopicPartition) -> dict[int, int]:
        """Return, by leader, the leader epoch in which ``place`` is fetched from it."""
        found = {leader: fetcher.epoch_of(place) for leader, fetcher in self._fetchers.items()}
        return {leader: epoch for leader, epoch in found.items() if epoch is not None}

    def failed(self) -> list[asyncio.Task[None]]:
        """List the fetchers that ended with an error, which none should."""
        return [task for task in self._tasks.values() if task.done() and not task.cancelled()]

    async def stop(self) -> None:
        """Stop all fetchers."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        self._fetchers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
