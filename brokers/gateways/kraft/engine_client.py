"""Put events on the bus in the order they came, and bring the engine's answers back to who asked."""

import asyncio
import time
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from brokers.engine.publisher import Publisher
from brokers.gateways.kraft.event_queue import Lane, Letter, Outbox, Waiter
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.kraft.slices import in_slices
from bus.interface import MAX_EVENT_BYTES, Bus
from state.decisions import Answer
from state.event import AdminEvent, Event

# After how many time-outs of the quorum without the bus somebody else may lead; a busy machine has room below that.
CUT_OFF_TIMEOUTS = 2


class NoAnswerError(Exception):
    """The engine did not answer in time; whether it will is not known."""


class TooLargeError(Exception):
    """A request that makes an event larger than the bus takes."""


class Desk:
    """Publish events, one call to the bus at a time and in order within a lane, and wait for answers by request ids.

    ``incarnation`` begins every request id, so that no two processes wait for the same answer.
    """

    def __init__(self, bus: Bus, incarnation: str, settings: Settings) -> None:
        self._incarnation = incarnation
        self._timeout_ms = settings.answer_timeout_ms
        self._cut_off_s = CUT_OFF_TIMEOUTS * settings.controller_quorum_fetch_timeout_ms / 1000
        self._published_s = time.monotonic()
        self._outbox = Outbox(settings.events_waiting_max)
        self._asked: dict[str, Letter] = {}
        self._asked_once: dict[Hashable, Letter] = {}
        # What was asked once, by the seq by which it is answered, if ever.
        self._due: deque[tuple[int, list[Letter]]] = deque()
        self._count = 0
        self._wake = asyncio.Event()
        self._publisher = Publisher(bus, settings.bus_unreachable_max_ms, "publisher")

    @property
    def is_cut_off(self) -> bool:
        """Say whether the bus has taken nothing, not even heartbeats, for so long that another gateway may lead."""
        return time.monotonic() - self._published_s > self._cut_off_s

    def tell(self, *events: Event, lane: Lane) -> None:
        """Publish events soon, all or none.

        Raises ``QueueFullError`` when too many wait already, ``TooLargeError`` when one is larger than the bus takes.
        """
        self._send([_letter(event, lane) for event in events], lane)

    async def ask(self, *events: Event, lane: Lane, timeout_ms: int | None = None) -> list[Answer]:
        """Publish events, and return their answers in the same order; what nobody waits for any more is not published.

        What admins ask bears how long they wait: an engine that comes later does not do it any more.
        Raises ``NoAnswerError`` when one does not come in time, and what ``tell`` raises.
        """
        timeout_ms = timeout_ms or self._timeout_ms
        letters = [self._question(_with_deadline(event, timeout_ms), lane) async for event in in_slices(events)]
        self._send(letters, lane)
        return await self._answers(letters, timeout_ms)

    async def ask_once(self, events: Mapping[Hashable, Event], lane: Lane) -> list[Answer]:
        """Do what ``ask`` does; an event that was asked before under its key, and not answered, is not published again.

        So those who ask again and again while nobody answers leave one event on the bus. What is asked otherwise
        under the same key is a question of its own.
        """
        letters: list[Letter] = []
        fresh: list[Letter] = []
        async for key, event in in_slices(events.items()):
            letter = self._asked_once.get(key)
            if letter is None or letter.asked != replace(event, time_ms=0):
                letter = self._question(event, lane, key)
                fresh.append(letter)
            letters.append(letter)
        self._send(fresh, lane)
        self._asked_once |= {letter.key: letter for letter in fresh}
        return await self._answers(letters, self._timeout_ms)

    def _question(self, event: Event, lane: Lane, key: Hashable = None) -> Letter:
        self._count += 1
        letter = _letter(replace(event, request_id=f"{self._incarnation}-{self._count}"), lane)
        letter.request_id = f"{self._incarnation}-{self._count}"
        letter.key, letter.asked = key, None if key is None else replace(event, time_ms=0)
        return letter

    def _send(self, letters: Sequence[Letter], lane: Lane) -> None:
        if (largest := max((letter.size for letter in letters), default=0)) > MAX_EVENT_BYTES:
            raise TooLargeError(f"an event of {largest} bytes, {MAX_EVENT_BYTES} are allowed")
        self._outbox.put(letters, lane)
        for letter in letters:
            if letter.request_id is not None:
                self._asked[letter.request_id] = letter
        self._wake.set()

    async def _answers(self, letters: Sequence[Letter], timeout_ms: int) -> list[Answer]:
        timeout_s = timeout_ms / 1000
        open_letters = [letter for letter in letters if letter.answer is None]
        waiter = Waiter(len(open_letters))
        for letter in open_letters:
            letter.waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                if open_letters:
                    await waiter.done
        except TimeoutError as error:
            raise NoAnswerError(f"no answer within {timeout_s:g} s") from error
        finally:
            for letter in open_letters:
                letter.waiters.remove(waiter)
                if letter.key is None and not letter.waiters:
                    self._forget(letter)
        return [letter.answer for letter in letters if letter.answer is not None]

    def _forget(self, letter: Letter) -> None:
        """Expect no answer any more; what is not on its way yet stays here."""
        if self._asked.pop(str(letter.request_id), None) is not None:
            letter.is_withdrawn = True
            self._outbox.free(letter)
        if self._asked_once.get(letter.key) is letter:
            del self._asked_once[letter.key]

    def answered(self, seq: int, answers: Iterable[Answer]) -> None:
        """Hand out what the engine decided on the event ``seq``; answers to others are passed over."""
        for answer in answers:
            letter = self._asked.get(str(answer.request_id))
            if letter is not None:
                self._forget(letter)
                letter.answer = answer
                for waiter in letter.waiters:
                    waiter.answered()
        while self._due and self._due[0][0] <= seq:
            # The engine had no answer to what is left: who asks again is heard again.
            for letter in self._due.popleft()[1]:
                self._forget(letter)

    async def run(self) -> None:
        """Publish until cancelled. Raises ``BusError`` when the bus stays out of reach."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while call := self._outbox.next_call():
                await self._publish(call)

    async def _publish(self, call: list[Letter]) -> None:
        # Some may have given up while the bus was out of reach.
        seq = await self._publisher.publish(lambda: [letter.raw for letter in call if not letter.is_withdrawn])
        if seq is None:
            return
        self._published_s = time.monotonic()
        once = []
        for letter in call:
            letter.raw = b""
            if letter.request_id is None:
                self._outbox.free(letter)
            elif letter.key is not None and letter.answer is None:
                once.append(letter)
        if once:
            self._due.append((seq, once))

    def close(self) -> None:
        """Let the last call to the bus end."""
        self._publisher.close()


def _with_deadline(event: Event, timeout_ms: int) -> Event:
    return replace(event, timeout_ms=timeout_ms) if isinstance(event, AdminEvent) else event


def _letter(event: Event, lane: Lane) -> Letter:
    raw = msgspec.json.encode(event)
    return Letter(raw, len(raw), lane)
