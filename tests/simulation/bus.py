"""The bus in memory (events in one order, decisions, the last committed state), and each process's link to it.

All processes see decisions in one order, but each only when its link delivers them. A cut link accepts no event
and announces no new decision. A broker that starts can read the committed state all the same. If the answer to a
publish is lost, its sender publishes again, so events are duplicated as in any at-least-once transport.
"""

import bisect
import random
from collections.abc import Sequence

import msgspec

from bus.interface import AFTER_ALL_OF, BusError, Claim, Decided, Entry, FencedError, Image, Page
from state.events import ControllerStarted
from state.level import NEWEST_LEVEL
from tests.simulation.brokers_seen import BrokersSeen
from tests.simulation.network import BUS, Network
from tests.simulation.virtual_loop import PROCESS
from tests.simulation.wall_clocks import WallClocks


class SimulatedBus:
    """The events published, and the decisions and state committed."""

    def __init__(self, clocks: WallClocks) -> None:
        self._clocks = clocks
        self.events: list[Entry] = []
        self.decided: list[Decided] = []
        self.shown_at: list[float] = []
        self.image = Image(0, [])
        self.controller_epoch = 0

    def publish(self, events: Sequence[bytes], *, is_claim: bool = False) -> int:
        entered_ms = self._clocks.now_ms(BUS)
        first = len(self.events) + 1
        self.events += [Entry(seq, raw, entered_ms, is_claim) for seq, raw in enumerate(events, first)]
        return len(self.events)

    def claim(self, controller_id: str, settings: dict[str, str], time_ms: int) -> Claim:
        self.controller_epoch += 1
        started = ControllerStarted(
            time_ms=time_ms,
            controller_id=controller_id,
            controller_epoch=self.controller_epoch,
            settings=dict(settings),
            level=NEWEST_LEVEL,
        )
        seq = self.publish([msgspec.json.encode(started)], is_claim=True)
        return Claim(self.controller_epoch, seq, self._clocks.now_ms(BUS))

    def commit(self, epoch: int, through: int, decided: Sequence[Decided], pages: Sequence[Page], now: float) -> None:
        if epoch != self.controller_epoch:
            raise FencedError(f"epoch {epoch}, {self.controller_epoch} was claimed")
        held = {(page.shard, page.page): page for page in [*self.image.pages, *pages]}
        self.image = Image(through, list(held.values()))
        self.decided += decided
        self.shown_at += [now] * len(decided)


class BusLink:
    """One broker's link to the bus, with only the methods that its parts call."""

    kind = "simulated"

    def __init__(self, broker: int, bus: SimulatedBus, network: Network, rng: random.Random, seen: BrokersSeen) -> None:
        self._broker = broker
        self._seen_by = seen
        self._bus = bus
        self._network = network
        self._rng = rng
        self._process = PROCESS.get()
        self._seen = 0
        self._lag_until = 0.0

    @property
    def _cut(self) -> bool:
        return self._network.is_cut(self._process.name, BUS)

    def publish(self, events: Sequence[bytes]) -> int:
        if self._cut:
            raise BusError("cut off from the bus")
        self._seen_by.published(events)
        last = self._bus.publish(events)
        if self._rng.random() < self._network.slow / 4:
            raise BusError("the answer was lost")
        return last

    def image(self) -> Image:
        self._seen = len(self._bus.decided)
        self._seen_by.starts_from(self._broker, (self._bus.image.seq, AFTER_ALL_OF))
        return self._bus.image

    def changed(self) -> bool:
        now = self._network.loop.now
        if self._cut or now < self._lag_until or self._seen == len(self._bus.decided):
            return False
        if self._rng.random() < self._network.slow:
            self._lag_until = now + self._rng.uniform(0.05, 0.6)
            return False
        return True

    def decided_columns(self, after: tuple[int, int], limit: int) -> list[Decided]:
        decided = self._bus.decided
        start = bisect.bisect_right(decided, after, key=lambda d: (d.seq, d.idx))
        # Cut at random between decisions, because one event's decisions need not arrive together.
        most = min(limit, self._rng.choice((1, 2, 5, limit)))
        chunk = decided[start : start + most]
        self._seen = start + len(chunk)
        self._seen_by.followed(self._broker, after, chunk)
        return chunk
