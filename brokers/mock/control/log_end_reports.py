"""How a mock broker reports log ends: many in one event."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from state.canonical import RESULTS_MAX
from state.events import AnyEvent, LogEndOffset, LogEndOffsets
from state.topic_events import LogEndRow, TopicLogEnds

# The beginning of a report's text, up to who sent it. A long text is cut where it is shown.
_SENDER = re.compile(r'\{"kind":"log_end_offsets"[^\[]*"broker":([0-9]+)')


class Topic(NamedTuple):
    """A topic of a report."""

    topic: str
    topic_id: str | None


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
        rows: dict[Topic, list[LogEndRow]] = defaultdict(list)
        for end in ends[first : first + RESULTS_MAX]:
            row = LogEndRow(end.partition, end.leader_epoch, end.log_end_offset)
            rows[Topic(end.topic, end.topic_id)].append(row)
        topics = tuple([TopicLogEnds(topic.topic, tuple(some), topic.topic_id) for topic, some in rows.items()])
        time_ms = ends[first].time_ms
        yield LogEndOffsets(time_ms=time_ms, broker=broker, broker_epoch=broker_epoch, topics=topics)
