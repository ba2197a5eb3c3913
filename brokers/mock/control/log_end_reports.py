"""How a mock broker reports log ends: many in one event, or one by one to an engine that does not know that event."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from state.canonical import RESULTS_MAX
from state.decisions import AnyDecision, Rejected
from state.events import AnyEvent, LogEndOffset, LogEndOffsets
from state.log_end_events import LogEndRow, TopicLogEnds
from state.reason import Reason

# The beginning of a report's text, up to who sent it. A long text is cut where it is shown.
_SENDER = re.compile(r'\{"kind":"log_end_offsets"[^\[]*"broker":([0-9]+)')


class Topic(NamedTuple):
    """A topic of a report."""

    topic: str
    topic_id: str | None


class LogEndReports:
    """The form of one broker's reports.

    A broker does not know the engine's version. An engine that does not know the event rejects it, and then log ends
    are reported one by one until a later controller epoch. On Kafka they always are: single reports are in a topic of
    their own there, which keeps the newest of each replica.
    """

    def __init__(self, broker: int, bus_kind: str) -> None:
        self._broker = broker
        self._is_single = bus_kind == "kafka"
        # The newest controller epoch that was heard of, and the newest one whose engine rejected the event.
        self._epoch = 0
        self._unknown_in = -1

    def apply(self, decision: AnyDecision) -> None:
        """Hear of a controller epoch."""
        self._epoch = max(self._epoch, decision.controller_epoch)

    def rejected(self, decision: Rejected) -> bool:
        """Say whether the engine rejected a report of many by this broker, and whether it must be made again.

        It is not if only the broker is unknown, because a broker that registers reports everything.
        """
        found = _SENDER.match(decision.raw)
        if found is None or found[1] != str(self._broker) or decision.reason == Reason.UNKNOWN_BROKER:
            return False
        if decision.reason != Reason.TIME_AHEAD:
            self._unknown_in = decision.controller_epoch
        return True

    def events(self, ends: Sequence[LogEndOffset]) -> Sequence[AnyEvent]:
        """Write reports as they may be sent now, in as few events as possible."""
        if len(ends) < 2 or self._is_single or self._unknown_in >= self._epoch or ends[0].broker_epoch is None:
            return ends
        return list(self._together(ends, ends[0].broker_epoch))

    def _together(self, ends: Sequence[LogEndOffset], broker_epoch: int) -> Iterator[AnyEvent]:
        for first in range(0, len(ends), RESULTS_MAX):
            rows: dict[Topic, list[LogEndRow]] = defaultdict(list)
            for end in ends[first : first + RESULTS_MAX]:
                row = LogEndRow(end.partition, end.leader_epoch, end.log_end_offset)
                rows[Topic(end.topic, end.topic_id)].append(row)
            topics = tuple([TopicLogEnds(topic.topic, tuple(some), topic.topic_id) for topic, some in rows.items()])
            time_ms = ends[first].time_ms
            yield LogEndOffsets(time_ms=time_ms, broker=self._broker, broker_epoch=broker_epoch, topics=topics)
