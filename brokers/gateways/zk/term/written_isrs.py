"""The ISRs that leaders wrote into ZooKeeper themselves, until the engine has decided about them.

Until then they are not overwritten and brokers are told nothing, because a leader that the engine elected meanwhile may
lack records that the written ISR has.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.call import Call
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.mirror.mirror import Changes
from brokers.gateways.zk.mirror.shared_mirror import SharedMirror, is_as_decided
from brokers.gateways.zk.mirror.stored import StoredState, stored_state
from brokers.gateways.zk.term.notes import take_notes
from brokers.gateways.zk.znodes import RECOVERING
from bus.clock import now_ms
from state.decisions import Answer, LeaderAndIsr
from state.written_events import IsrWritten

logger = structlog.get_logger()

# Each attempt fails only because something else was decided about the partition meanwhile.
ATTEMPTS_MAX = 20
FULL_PAUSE_S = 0.1


class RefusedIsrError(Exception):
    """The engine refuses what a leader wrote; the message names the partition. The term cannot go on from it."""


class WrittenIsrs:
    """The ISRs that leaders wrote. ``write`` makes ZooKeeper hold what is decided by now."""

    def __init__(
        self,
        engine: EngineClient,
        view: ClusterView,
        mirror: SharedMirror,
        session: Session,
        call: Call,
        write: Callable[[Changes], Awaitable[None]],
    ) -> None:
        self._engine = engine
        self._view = view
        self._mirror = mirror
        self._session = session
        self._call = call
        self._write = write
        view.versions.clear()

    def hold(self, found: Mapping[Place, StoredState]) -> None:
        """Hold back each partition until ``report`` is done with it."""
        self._mirror.held.update(found)

    async def changed(self) -> dict[Place, StoredState]:
        """Read the brokers' notes since the last call, and hold back the partitions that leaders wrote."""
        noted = await self._call(take_notes, self._session, znodes.ISR_CHANGES, znodes.places_of)
        places = dict.fromkeys(place for one in noted for place in one)
        news = {place: await self._news(place) for place in places if place not in self._mirror.held}
        found = {place: stored for place, stored in news.items() if stored is not None}
        self.hold(found)
        return found

    async def _news(self, place: Place) -> StoredState | None:
        """Read a partition's znode; None if no leader has written it since."""
        stored = await self._call(stored_state, self._session, place)
        return stored if stored is not None and self._mirror.is_news(place, stored) else None

    async def report(self, place: Place, found: StoredState) -> None:
        """Tell the engine what a leader wrote, and write the engine's decision. Raises ``RefusedIsrError``."""
        stored: StoredState | None = found
        while stored is not None:
            answer = await self._answer(place, stored)
            if answer is not None and answer.error != "NONE":
                raise RefusedIsrError(f"{place.topic}-{place.partition}: {answer.error}: {answer.message}")
            self._agree(place, stored)
            # The leader may have written again meanwhile.
            stored = await self._news(place)
        self._mirror.held.discard(place)
        await self._write({place.topic: [place.partition]})

    def _agree(self, place: Place, stored: StoredState) -> None:
        decision = self._view.partition(place)
        if decision is not None:
            epoch = decision.partition_epoch if is_as_decided(decision, stored.state) else None
            self._mirror.agreed(self._view, place, stored.version, epoch)

    async def _answer(self, place: Place, stored: StoredState) -> Answer | None:
        """Return the engine's answer; None if the partition is gone."""
        answer = None
        for _ in range(ATTEMPTS_MAX):
            decision = self._view.partition(place)
            if decision is None:
                return None
            answer = await self._asked(_event(decision, stored))
            if answer.error in ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"):
                return None
            if answer.error != "INVALID_UPDATE_VERSION":
                break
        return answer

    async def _asked(self, event: IsrWritten) -> Answer:
        """Ask until an answer comes. While the engine is away, the partition stays as the leader wrote it."""
        while True:
            try:
                key = ("isr_written", event.topic, event.partition)
                [answer] = await self._engine.ask_once({key: event}, Lane.PARTITION)
            except (NoAnswerError, QueueFullError) as error:
                logger.info("an ISR is not reported yet", topic=event.topic, partition=event.partition, why=str(error))
                await asyncio.sleep(FULL_PAUSE_S)
                continue
            return answer


def _event(decision: LeaderAndIsr, stored: StoredState) -> IsrWritten:
    state = stored.state
    return IsrWritten(
        time_ms=now_ms(),
        topic=decision.topic,
        topic_id=decision.topic_id,
        partition=decision.partition,
        broker=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=decision.partition_epoch,
        isr=state.isr,
        leader_recovery_state="RECOVERING" if state.leader_recovery_state == RECOVERING else "RECOVERED",
        zxid=stored.zxid,
    )
