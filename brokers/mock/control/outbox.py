"""A mock broker's events to the engine: in the order in which they were sent, with log ends collected."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from brokers.engine.publisher import Publisher
from brokers.mock.settings import Settings
from bus.clock import now_ms
from bus.interface import Bus, BusError
from state.canonical import RESULTS_MAX
from state.decisions import Answer, AnyDecision, Rejected
from state.event_text import decode
from state.events import AnyEvent, LogEndOffset, LogEndOffsets, Malformed, ReplicaLog, ReplicaReport, TopicPartition
from state.reason import Reason
from state.topic_events import LogEndRow, TopicLogEnds

WAITING_MAX = 200_000
# The beginning of a report's text, up to who sent it. A long text is cut where it is shown.
_SENDER = re.compile(r'\{"kind":"log_end_offsets"[^\[]*"broker":([0-9]+)')


class LogEnd(NamedTuple):
    """The end and the start of a replica's log, and the leader epoch."""

    topic_id: str
    leader_epoch: int
    end: int
    start: int


LogEnds = Callable[[TopicPartition], LogEnd | None]
StillTrue = Callable[[ReplicaReport], bool]
_Refused = tuple[type[LogEndOffset | ReplicaLog | ReplicaReport], TopicPartition, str | None]


class Outbox:
    """The events that go to the bus, in the order in which they were sent.

    A log end is not queued when it changes. Its partition is marked instead, and the event has the log end at the time
    of the call to the bus. Marks are collected for at most ``watermark.interval.ms``. Log ends are sent under the
    registration ``broker_epoch``, several in one event.

    The engine refuses events while this broker's clock is far ahead. Refused log ends and reports are sent again once
    the engine accepts a heartbeat, because it accepts their time too from then on. What it refuses for another
    reason is not repeated, because it would be refused again.
    """

    def __init__(self, broker: int, bus: Bus, settings: Settings) -> None:
        self._broker = broker
        self.broker_epoch: int | None = None
        self._interval = settings.watermark_interval_ms / 1000
        self._events: list[AnyEvent] = []
        self._changed: dict[TopicPartition, None] = {}
        self._reported: dict[TopicPartition, tuple[int, int]] = {}
        # What was refused for its time, by kind, replica and topic id, and how to send it again.
        self._refused: dict[_Refused, Callable[[], None]] = {}
        # Return a replica's log end, or None if nothing may be sent yet, and whether a refused report still holds.
        self.log_end_of: LogEnds = lambda place: None
        self.is_still_true: StillTrue = lambda report: False
        # Report a replica's log again, if it still follows no leader.
        self.report_log_again: Callable[[TopicPartition], None] = lambda place: None
        # On Kafka single reports go to a topic of their own, which keeps the newest of each replica.
        self._is_single = bus.kind == "kafka"
        self._wake = asyncio.Event()
        self._next_log_ends = 0.0
        self._publisher = Publisher(bus, settings.bus_unreachable_max_ms, "outbox")

    def registered(self, broker_epoch: int) -> None:
        """Send log ends under this registration from now on.

        Log ends that were sent before are sent again, because the engine forgot them with the former registration.
        """
        self.broker_epoch = broker_epoch
        self._changed.update(dict.fromkeys(self._reported))
        self._reported.clear()
        self._wake.set()

    @property
    def has_refused(self) -> bool:
        """Whether something that the engine refused waits for the answer to a heartbeat."""
        return bool(self._refused)

    @property
    def waiting(self) -> int:
        """How many events wait to be published; a changed log end counts as one."""
        return len(self._events) + len(self._changed)

    def apply(self, decision: AnyDecision) -> None:
        """Keep events that the engine refused for their time, and send them again once it accepts a heartbeat."""
        match decision:
            case Rejected(reason=Reason.TIME_AHEAD) if is_report_of(decision.raw, self._broker):
                # All replicas, because a rejection shows only the beginning of a long event.
                for place in list(self._reported):
                    self._keep_log_end(place)
            case Rejected(reason=Reason.TIME_AHEAD):
                self._keep_refused(decode(decision.raw.encode()))
            case Answer(request="broker_heartbeat", error="NONE") if decision.broker == self._broker:
                refused, self._refused = self._refused, {}
                for send_again in refused.values():
                    send_again()

    def _keep_refused(self, event: AnyEvent | Malformed) -> None:
        if not isinstance(event, LogEndOffset | ReplicaLog | ReplicaReport) or event.broker != self._broker:
            return
        place = TopicPartition(event.topic, event.partition)
        match event:
            case LogEndOffset() if self._reported.get(place) == (event.leader_epoch, event.log_end_offset):
                self._keep_log_end(place)
            case ReplicaLog():
                self._refused[ReplicaLog, place, None] = partial(self.report_log_again, place)
            case ReplicaReport():
                if len(self._refused) >= WAITING_MAX:
                    raise BusError(f"{WAITING_MAX} reports were refused")
                self._refused[ReplicaReport, place, event.topic_id] = partial(self._report_again, event)

    def _keep_log_end(self, place: TopicPartition) -> None:
        del self._reported[place]
        self._refused[LogEndOffset, place, None] = partial(self.log_end_changed, place)

    def _report_again(self, report: ReplicaReport) -> None:
        if self.is_still_true(report):
            self.send(replace(report, time_ms=now_ms()))

    def send(self, event: AnyEvent) -> None:
        """Publish ``event`` soon."""
        if len(self._events) >= WAITING_MAX:
            raise BusError(f"{WAITING_MAX} events wait for the bus")
        self._events.append(event)
        self._wake.set()

    def log_end_changed(self, place: TopicPartition) -> None:
        """Send the log end of a replica soon, unless it is still the last one sent."""
        self._changed[place] = None
        self._wake.set()

    def reported_end_offset(self, place: TopicPartition, leader_epoch: int) -> int | None:
        """Return the log end that was last sent in ``leader_epoch``; None if none was, or if it was refused."""
        epoch, end = self._reported.get(place, (-1, -1))
        return end if epoch == leader_epoch else None

    def forget(self, place: TopicPartition) -> None:
        """Drop what was sent for a replica that is gone."""
        self._changed.pop(place, None)
        self._reported.pop(place, None)
        self._refused.pop((LogEndOffset, place, None), None)
        self._refused.pop((ReplicaLog, place, None), None)

    async def run(self) -> None:
        """Publish until cancelled. Raises ``BusError`` when the bus stays out of reach."""
        while True:
            await self._due()
            await self._publish()

    async def _due(self) -> None:
        """Wait for an event, or until the oldest mark has waited long enough."""
        loop = asyncio.get_running_loop()
        while not self._events:
            wait = self._next_log_ends - loop.time() if self._changed else None
            if wait is not None and wait <= 0:
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                return

    def _drained(self) -> list[bytes]:
        # Events go first. An ``alter_isr`` was based on the log ends sent before it, so no later one may overtake it.
        batch = [msgspec.json.encode(event) for event in self._events]
        self._events.clear()
        loop_time = asyncio.get_running_loop().time()
        if self._changed and loop_time >= self._next_log_ends:
            self._next_log_ends = loop_time + self._interval
            ends = self._log_end_events()
            batch += [msgspec.json.encode(event) for event in (ends if self._is_single else together(ends))]
            self._changed.clear()
        return batch

    def _log_end_events(self) -> list[LogEndOffset]:
        events = []
        for place in self._changed:
            log_end = self.log_end_of(place)
            if log_end is None or self._reported.get(place) == (log_end.leader_epoch, log_end.end):
                continue
            self._reported[place] = (log_end.leader_epoch, log_end.end)
            events.append(
                LogEndOffset(
                    time_ms=now_ms(),
                    topic=place.topic,
                    topic_id=log_end.topic_id,
                    partition=place.partition,
                    broker=self._broker,
                    leader_epoch=log_end.leader_epoch,
                    log_end_offset=log_end.end,
                    log_start_offset=log_end.start,
                    broker_epoch=self.broker_epoch,
                )
            )
        return events

    async def flush(self) -> None:
        """Publish everything that waits, and marked log ends too. Call this at the end, when ``run`` has stopped."""
        self._next_log_ends = 0.0
        await self._publish()

    async def _publish(self) -> None:
        batch = self._drained()
        await self._publisher.publish(lambda: batch)

    def close(self) -> None:
        self._publisher.close()


def is_report_of(raw: str, broker: int) -> bool:
    """Return whether the text of a rejected event is a report of many by this broker."""
    found = _SENDER.match(raw)
    return found is not None and found[1] == str(broker)


def together(ends: Sequence[LogEndOffset]) -> Sequence[AnyEvent]:
    """Write one broker's reports in as few events as possible."""
    if len(ends) < 2 or ends[0].broker_epoch is None:
        return ends
    return list(_together(ends, ends[0].broker, ends[0].broker_epoch))


def _together(ends: Sequence[LogEndOffset], broker: int, broker_epoch: int) -> Iterator[AnyEvent]:
    for first in range(0, len(ends), RESULTS_MAX):
        rows: dict[tuple[str, str | None], list[LogEndRow]] = defaultdict(list)
        for end in ends[first : first + RESULTS_MAX]:
            row = LogEndRow(end.partition, end.leader_epoch, end.log_end_offset)
            rows[end.topic, end.topic_id].append(row)
        topics = tuple([TopicLogEnds(name, tuple(some), topic_id) for (name, topic_id), some in rows.items()])
        time_ms = ends[first].time_ms
        yield LogEndOffsets(time_ms=time_ms, broker=broker, broker_epoch=broker_epoch, topics=topics)
