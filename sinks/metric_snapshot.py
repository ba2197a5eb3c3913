"""The measured values: one immutable snapshot, so that a scrape never sees half an update."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

import msgspec

from sinks.resources import Resources
from sinks.web.partitions import Row
from state.cluster import Totals
from state.counted import reasons_in, shrunk_without
from state.numbered_run import NumberedRun
from state.reason import Reason
from state.shadow import Shadow, age_of

SECONDS_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
RECENT_BATCHES = 256
KindReason = tuple[str, str]


class Histogram(msgspec.Struct, frozen=True):
    """Durations counted by ``SECONDS_BUCKETS``. The last count is of durations above all bounds."""

    counts: tuple[int, ...] = (0,) * (len(SECONDS_BUCKETS) + 1)
    sum_s: float = 0.0

    def added(self, seconds: Mapping[float, int]) -> "Histogram":
        """Return this histogram with durations added, each with its count."""
        counts, sum_s = list(self.counts), self.sum_s
        for value, often in seconds.items():
            counts[bisect_left(SECONDS_BUCKETS, value)] += often
            sum_s += value * often
        return Histogram(tuple(counts), sum_s)


class Recent(msgspec.Struct, frozen=True):
    """The durations of the last ``RECENT_BATCHES`` batches, each with its count, newest last.

    ``count`` and ``sum_s`` cover all durations since the start.
    """

    batches: tuple[Mapping[float, int], ...] = ()
    count: int = 0
    sum_s: float = 0.0

    def added(self, seconds: Mapping[float, int]) -> "Recent":
        """Return this with one more batch."""
        if not seconds:
            return self
        batches = (*self.batches, dict(seconds))[-RECENT_BATCHES:]
        spent = sum(value * often for value, often in seconds.items())
        return Recent(batches, self.count + sum(seconds.values()), self.sum_s + spent)

    def quantiles(self, wanted: Iterable[float]) -> dict[float, float]:
        """Return the recent durations at the ``wanted`` quantiles (0 to 1). Each is 0 if there are no durations."""
        merged: Counter[float] = Counter()
        for batch in self.batches:
            merged.update(batch)
        ordered = sorted(merged)
        upto = list(accumulate(merged[value] for value in ordered))
        if not ordered:
            return dict.fromkeys(wanted, 0.0)
        return {share: ordered[bisect_left(upto, share * upto[-1])] for share in wanted}


class Counts(msgspec.Struct, frozen=True):
    """Counts of decisions: by kind and reason, by the engine's clock, and two that no reason shows."""

    by_reason: Mapping[KindReason, int] = {}
    by_time_ms: Mapping[int, int] = {}
    unclean: int = 0
    failed_isr_updates: int = 0
    # By broker.
    fencings: Mapping[int, int] = {}
    restarts: Mapping[int, int] = {}
    isr_shrinks: Mapping[int, int] = {}


# After these a broker is fenced, because it registered or because it was fenced before.
_NO_FENCING = frozenset({Reason.BROKER_REGISTERED, Reason.BROKER_RESTARTED, Reason.LOG_DIR_FAILED})


class _Head(msgspec.Struct):
    kind: str
    reason: str
    time_ms: int
    broker: int = -1
    state: str = ""
    unclean: bool = False
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    request: str = ""
    error: str = "NONE"
    # Of a request for many ISRs: the rows that were refused.
    results: tuple[msgspec.Raw, ...] = ()


_ISR_REQUESTS = ("alter_isr", "alter_isrs")
_head = msgspec.json.Decoder(_Head)


def count_decisions(runs: Iterable[NumberedRun]) -> Counts:
    """Count the decisions of a batch. Only single ones are decoded."""
    by_reason: Counter[KindReason] = Counter()
    by_time_ms: Counter[int] = Counter()
    fencings: Counter[int] = Counter()
    restarts: Counter[int] = Counter()
    isr_shrinks: Counter[int] = Counter()
    unclean = failed_isr_updates = 0
    decode = _head.decode
    # Of the last run of several decisions.
    event, time_ms = -1, 0
    for run in runs:
        if run.columns:
            if run.seq != event:
                event, time_ms = run.seq, decode(next(run.each())).time_ms
            by_time_ms[time_ms] += run.decisions
            kind = run.kind.decode()
            for told, count in reasons_in(run.columns).items():
                by_reason[kind, told.reason] += count
                unclean += count * told.unclean
            isr_shrinks += shrunk_without(run.columns)
            continue
        head = decode(run.text)
        by_reason[head.kind, head.reason] += 1
        by_time_ms[head.time_ms] += 1
        unclean += head.unclean
        if head.error != "NONE" and head.request in _ISR_REQUESTS:
            failed_isr_updates += len(head.results) or 1
        if head.kind == "broker":
            restarts[head.broker] += head.reason == Reason.BROKER_RESTARTED
            fencings[head.broker] += head.state == "fenced" and head.reason not in _NO_FENCING
        elif head.reason == Reason.ISR_SHRUNK:
            isr_shrinks.update(set(head.replicas).difference(head.isr))
    return Counts(by_reason, by_time_ms, unclean, failed_isr_updates, +fencings, +restarts, isr_shrinks)


class MetricSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the metrics show, at one moment. Counts are since this job started."""

    version: str = ""
    controller_id: str = ""
    controller_epoch: int = 0
    active: bool = False
    standby: bool = False
    # Whether this process only shows what is on the bus of a shadow.
    observing: bool = False
    # The phase of its start, and since when by the steady clock; empty once it has started.
    phase: str = ""
    phase_steady_ms: int = 0
    # Whether a standby has loaded everything that it needs to decide.
    loaded: bool = False
    # When it last looked whether it is its turn, by the steady clock.
    looked_steady_ms: int | None = None
    # Whether a standby takes in the state that the active engine writes.
    following: bool = False
    takeovers: int = 0
    # By the steady clock.
    took_over_steady_ms: int = 0
    last_commit_steady_ms: int | None = None
    # When the metrics were asked for, by the steady clock and by the machine's.
    scraped_steady_ms: int = 0
    scraped_ms: int = 0

    batches: int = 0
    events: int = 0
    last_batch_ms: int = 0
    last_engine_ms: int = 0
    clock_steps: int = 0
    batch_seconds: Histogram = Histogram()
    phase_seconds: Mapping[str, float] = {}

    # What follows a commit, by part.
    failed_after_commit: Mapping[str, int] = {}
    decisions: Mapping[KindReason, int] = {}
    delay_seconds: Histogram = Histogram()
    recent_delays: Recent = Recent()
    # Each event has the duration of its batch.
    recent_batches: Recent = Recent()
    unclean: int = 0
    failed_isr_updates: int = 0
    # By broker.
    fencings: Mapping[int, int] = {}
    restarts: Mapping[int, int] = {}
    isr_shrinks: Mapping[int, int] = {}

    last_seq: int = 0
    decided_seq: int = 0
    # Records that cannot be decided, how long that has lasted, and once it is long, the transaction that keeps them.
    blocked_records: int = 0
    blocked_ms: int = 0
    blocker: str = ""
    # When there last were any, by the steady clock.
    last_blocked_steady_ms: int = 0
    clock_ms: int = 0
    # How far the engine's clock was ahead of the bus's at the newest tick; None if that is not known.
    bus_clock_off_ms: int | None = None
    # None if the cluster is led on this bus.
    shadow: Shadow | None = None
    brokers: Mapping[str, int] = {}
    totals: Totals = Totals()
    backlog: Mapping[int, int] = {}
    # The worst ones.
    at_risk: tuple[Row, ...] = ()
    # Partitions of which only the leader may lead; None if that is not known.
    one_from_offline: int | None = None
    resources: Resources = Resources()

    @property
    def clock_off_ms(self) -> int | None:
        """How far the engine's clock was ahead of its machine's at the last commit; None before the first commit."""
        return self.last_engine_ms - self.last_batch_ms if self.last_batch_ms else None

    @property
    def shadow_age_ms(self) -> int:
        """How old what was observed of another cluster is."""
        return 0 if self.shadow is None else age_of(self.shadow.heard_ms, self.clock_ms, self.scraped_ms)

    @property
    def commit_age_ms(self) -> int:
        """How long ago the last commit was, or the take-over if there was no commit."""
        return max(0, self.scraped_steady_ms - (self.last_commit_steady_ms or self.took_over_steady_ms))

    @property
    def lag_events(self) -> int:
        """How many events on the bus are not decided yet."""
        return self.last_seq - self.decided_seq

    def decided_for(self, kind: str, reason: str | None = None) -> int:
        """Return the number of decisions of a kind, for one reason or for all."""
        return sum(n for (k, r), n in self.decisions.items() if k == kind and reason in (None, r))
