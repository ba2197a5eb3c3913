"""How often brokers failed lately: counted from the decisions on the bus."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec

from bus.clock import now_ms
from bus.interface import AFTER_ALL_OF, Bus, Decided
from cli.errors import Unreachable
from state.reason import Reason

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
DECISIONS_PER_READ = 5_000
# A day of a busy cluster has some hundred thousand decisions.
DECISIONS_MAX = 5_000_000
WHAT = ("fencings", "restarts", "isr_shrinks")
_BROKER = b'{"kind":"broker"'
_SHRUNK = b'"%s"' % Reason.ISR_SHRUNK.encode()
# Decisions on a broker that is fenced, but was not fenced by them.
_NO_FENCING = frozenset({Reason.BROKER_REGISTERED, Reason.BROKER_RESTARTED, Reason.LOG_DIR_FAILED})

# By broker and what is counted.
Counts = Counter[tuple[int, str]]


class _Told(msgspec.Struct):
    """The fields of a decision that the counts need."""

    kind: str
    time_ms: int
    reason: str
    broker: int = -1
    state: str = ""
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()


_decode = msgspec.json.Decoder(_Told).decode


def counts_of(bus: Bus, fenced_now: Collection[int]) -> tuple[Counts, Counts]:
    """Count the fencings and restarts of each broker, and how often an ISR shrank without it, by the bus's clock.

    An ISR that shrinks while a broker is fenced says nothing about that broker. Return the counts of the last hour and
    of the last day. Raises ``Unreachable`` if there are too many decisions.
    """
    now = now_ms()
    tally = _Tally()
    hour_seq, place = bus.seq_at(now - HOUR_MS), (bus.seq_at(now - DAY_MS), AFTER_ALL_OF)
    read = 0
    while page := bus.decisions(place, DECISIONS_PER_READ, passing_over=True):
        place = (page[-1].seq, page[-1].idx)
        read += len(page)
        if read > DECISIONS_MAX:
            raise Unreachable(f"the last day has more than {DECISIONS_MAX} decisions: leave out --counts.")
        for decided in page:
            tally.add(decided, lately=decided.seq > hour_seq)
    for broker in set(fenced_now) - tally.fenced.keys():
        tally.forget_shrinks(broker)
    return tally.hour, tally.day


class _Tally:
    """The counts up to some decision, and whether each broker was fenced there, as far as decisions told."""

    def __init__(self) -> None:
        self.hour, self.day = Counts(), Counts()
        self.fenced: dict[int, bool] = {}

    def add(self, decided: Decided, *, lately: bool) -> None:
        # Most decisions are neither, and decoding them would take long.
        if not decided.body.startswith(_BROKER) and _SHRUNK not in decided.body:
            return
        one = _decode(decided.body)
        found = Counts()
        if one.kind == "broker":
            if one.broker not in self.fenced and one.state == "active":
                # It was fenced until here.
                self.forget_shrinks(one.broker)
            self.fenced[one.broker] = one.state == "fenced"
            found[one.broker, "restarts"] += one.reason == Reason.BROKER_RESTARTED
            found[one.broker, "fencings"] += one.state == "fenced" and one.reason not in _NO_FENCING
        elif one.kind == "leader_and_isr" and one.reason == Reason.ISR_SHRUNK:
            for replica in one.replicas:
                found[replica, "isr_shrinks"] += replica not in one.isr and not self.fenced.get(replica, False)
        self.day.update(found)
        if lately:
            self.hour.update(found)

    def forget_shrinks(self, broker: int) -> None:
        """Take back what was counted of a broker that was fenced."""
        for counts in (self.hour, self.day):
            counts.pop((broker, "isr_shrinks"), None)


def counts_columns(broker: int, hour: Counts, day: Counts) -> dict[str, Any]:
    """Return the counts of a broker as JSON shows them."""
    return {
        name: {what: counts[broker, what] for what in WHAT} for name, counts in (("last_hour", hour), ("last_day", day))
    }
