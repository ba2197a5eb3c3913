"""What happened to an observed cluster, told from the operations of its controller."""

from collections import Counter

import msgspec

from state.decisions import decode
from state.divergence import Divergence, Violation
from state.ids import NO_LEADER
from state.observed_events import Cause, Observed, ObservedPartition

# How many rows of one kind a report lists. It counts all of them.
ROWS_MAX = 100
_FENCES = (
    Cause.session_expired,
    Cause.session_or_shutdown,
    Cause.shutdown_complete,
    Cause.stopped_session_ended,
)
_KINDS = (b'{"kind":"divergence"', b'{"kind":"violation"')


class BrokerTold(msgspec.Struct, kw_only=True):
    """How often a broker went away."""

    broker: int
    # By cause.
    fenced: Counter[str] = msgspec.field(default_factory=Counter)
    shutdowns: int = 0
    unclean_restarts: int = 0
    failed_directories: int = 0

    @property
    def losses(self) -> int:
        """How often the broker left without having asked to, or may have."""
        return self.fenced[Cause.session_expired] + self.fenced[Cause.session_or_shutdown]


class Unclean(msgspec.Struct, frozen=True, kw_only=True):
    """An election of a replica that may lack records."""

    time_ms: int
    offset: int
    topic: str
    partition: int
    leader: int
    cause: str


class Offline(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a partition had no leader."""

    topic: str
    partition: int
    from_ms: int
    # None: until the end of the log.
    to_ms: int | None
    lasted_ms: int
    offset: int
    lost_by: str


class Note(msgspec.Struct, frozen=True):
    """Something that the log should not have."""

    offset: int
    what: str


class ShadowReport(msgspec.Struct, kw_only=True):
    """The report. Events are taken in their order."""

    cluster_id: str
    first_ms: int = 0
    last_ms: int = 0
    first_offset: int = 0
    last_offset: int = -1
    # Of operations.
    causes: Counter[str] = msgspec.field(default_factory=Counter)
    # Of partitions that got another leader, by the cause.
    elections: Counter[str] = msgspec.field(default_factory=Counter)
    brokers: dict[int, BrokerTold] = {}
    unclean: list[Unclean] = []
    unclean_count: int = 0
    offline: list[Offline] = []
    offline_count: int = 0
    partitions: int = 0
    topics: int = 0
    controllers: list[dict[str, int]] = []
    # Of partitions whose ISR shrank or grew by a request of the leader.
    isr_shrinks: Counter[str] = msgspec.field(default_factory=Counter)
    notes: list[Note] = []
    divergences: list[Divergence] = []
    divergences_count: int = 0
    violations: list[Violation] = []
    violations_count: int = 0


class ReportWriter:
    """Takes what was observed, and what the rules said to it."""

    def __init__(self, cluster_id: str) -> None:
        self.report = ShadowReport(cluster_id=cluster_id)
        self._leaders: dict[tuple[str, int], int] = {}
        # Since when partitions have no leader, and why.
        self._offline: dict[tuple[str, int], tuple[int, int, str]] = {}
        self._numbers: dict[str, set[int]] = {}
        self._ended: list[Offline] = []
        self._is_new = True

    def take(self, event: Observed) -> None:
        """Take the next event, which may be a part of an operation."""
        report = self.report
        if self._is_new:
            report.first_ms, report.first_offset, self._is_new = event.time_ms, event.offset, False
        report.last_ms = max(report.last_ms, event.time_ms)
        report.last_offset = event.last_offset
        if event.part == 0:
            self._count(event)
        for row in event.results.partitions:
            self._take_partition(event, row)
        for deleted in event.results.deleted_topics:
            for number in self._numbers.pop(deleted.topic, ()):
                del self._leaders[deleted.topic, number]
                self._came_back((deleted.topic, number), event.time_ms)

    def _count(self, event: Observed) -> None:
        report = self.report
        report.causes[event.cause] += 1
        if (controller := event.results.controller) is not None:
            report.controllers.append({"time_ms": event.time_ms, "controller": controller.controller})
        if not isinstance(event.evidence, msgspec.UnsetType) and isinstance(event.evidence.broker, int):
            self._count_broker(event, event.evidence.broker)

    def _count_broker(self, event: Observed, broker: int) -> None:
        told = self.report.brokers.get(broker) or BrokerTold(broker=broker)
        match event.cause:
            case Cause.controlled_shutdown:
                told.shutdowns += 1
            case Cause.unclean_restart:
                told.unclean_restarts += 1
            case Cause.directory_failed:
                told.failed_directories += 1
            case cause if cause in _FENCES:
                told.fenced[cause] += 1
            case _:
                return
        self.report.brokers[broker] = told

    def _take_partition(self, event: Observed, row: ObservedPartition) -> None:
        place = row.topic, row.partition
        before = self._leaders.get(place)
        self._leaders[place] = row.leader
        self._numbers.setdefault(row.topic, set()).add(row.partition)
        if event.cause is Cause.isr_shrunk:
            self.report.isr_shrinks[row.topic] += 1
        if row.leader == NO_LEADER:
            self._offline.setdefault(place, (event.time_ms, event.offset, event.cause))
            return
        self._came_back(place, event.time_ms)
        if before in (None, row.leader) or event.cause is Cause.gap:
            return
        self.report.elections[event.cause] += 1
        if row.leader_recovery_state == "RECOVERING":
            self._take_unclean(event, row)

    def _take_unclean(self, event: Observed, row: ObservedPartition) -> None:
        self.report.unclean_count += 1
        if len(self.report.unclean) < ROWS_MAX:
            unclean = Unclean(
                time_ms=event.time_ms,
                offset=event.offset,
                topic=row.topic,
                partition=row.partition,
                leader=row.leader,
                cause=event.cause,
            )
            self.report.unclean.append(unclean)

    def _came_back(self, place: tuple[str, int], time_ms: int, *, is_over: bool = True) -> None:
        if (began := self._offline.pop(place, None)) is not None:
            from_ms, offset, cause = began
            self._ended.append(
                Offline(
                    topic=place[0],
                    partition=place[1],
                    from_ms=from_ms,
                    to_ms=time_ms if is_over else None,
                    lasted_ms=max(0, time_ms - from_ms),
                    offset=offset,
                    lost_by=cause,
                )
            )

    def take_decision(self, body: bytes) -> None:
        """Take the text of a decision; only divergences and violations count."""
        if not body.startswith(_KINDS):
            return
        decision, report = decode(body), self.report
        if isinstance(decision, Divergence):
            report.divergences_count += 1
            report.divergences += [decision] if len(report.divergences) < ROWS_MAX else []
        elif isinstance(decision, Violation):
            report.violations_count += 1
            report.violations += [decision] if len(report.violations) < ROWS_MAX else []

    def finished(self) -> ShadowReport:
        """Return the report at the end of the log."""
        report = self.report
        for place in list(self._offline):
            self._came_back(place, report.last_ms, is_over=False)
        self._ended.sort(key=lambda one: (-one.lasted_ms, one.topic, one.partition))
        report.offline_count, report.offline = len(self._ended), self._ended[:ROWS_MAX]
        report.partitions, report.topics = len(self._leaders), len(self._numbers)
        return report
