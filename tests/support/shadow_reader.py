"""A shadow's reader in a thread of its own, and everything that it has read."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from brokers.shadow.controller_line import Endpoint, Position
from brokers.shadow.decoding import decoded
from brokers.shadow.metadata_reader import MetadataReader
from brokers.shadow.quorum import Quorum
from brokers.shadow.source import Batch, Read
from brokers.wire.batch_header import batches_in
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from brokers.wire.record_batch import decode_batches
from brokers.wire.security.connecting import Client
from tests.support.waiting import TIMEOUT_S, wait_until

PATIENCE_MS = 60_000


class ShadowReader:
    """A reader that has begun to follow a log."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        after: Position | None = None,
        client: Client | None = None,
        patience_ms: int = PATIENCE_MS,
        cluster_id: str | None = None,
    ) -> None:
        self.read: list[Read] = []
        self.error: Exception | None = None
        self.cluster_id = ""
        self.quorum = Quorum(endpoints, client or Client(), patience_ms)
        self._reader = MetadataReader(self.quorum, cluster_id)
        self._after = after
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._follow())
        self._thread = threading.Thread(target=self._run, name="shadow-reader")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self.error = error
        finally:
            self.quorum.close()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _follow(self) -> None:
        self.cluster_id = await self._reader.cluster_id()
        async for item in self._reader.follow(self._after):
            self.read.append(item)

    @property
    def batches(self) -> list[Batch]:
        return [item for item in self.read if isinstance(item, Batch)]

    @property
    def position(self) -> Position:
        """Where a reader goes on that has read the same."""
        last = self.batches[-1]
        return Position(last.next_offset, last.epoch)

    def wait_for(self, condition: Callable[[Read], Any], what: str) -> Read:
        """Wait for something to be read that meets a condition, and return the first such thing."""
        seen = 0

        def found() -> Read | None:
            nonlocal seen
            if self.error is not None:
                raise self.error
            while seen < len(self.read):
                seen += 1
                if condition(self.read[seen - 1]):
                    return self.read[seen - 1]
            return None

        found_one: Read = wait_until(found, f"{what} to be read")
        return found_one

    def wait_for_offset(self, offset: int) -> None:
        self.wait_for(lambda item: isinstance(item, Batch) and item.next_offset > offset, f"offset {offset}")

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()

    def __enter__(self) -> "ShadowReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def batches_on_disk(data: Path) -> list[Batch]:
    """Read the batches in a node's copy of the metadata log, committed or not."""
    found: list[Batch] = []
    for segment in sorted((data / METADATA_DIRECTORY).glob("*.log")):
        written = segment.read_bytes()
        whole = sum(batch.size for _, batch in batches_in(written))
        found += map(decoded, decode_batches(written[:whole]))
    return found
