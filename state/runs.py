"""Runs: the decisions of one kind on one event about one topic, encoded together.

The problem: a lost broker leads to tens of thousands of decisions. Handing each of them to the sink, sorting it and
putting its index into its text costs as much as deciding it.

The insight: a topic is in one shard, so in the canonical order nothing can come between the decisions of one kind on
one event about one topic. They are neighbours, whatever the other shards say. So they travel as one part, with a blank
for each index, and one formatting numbers them all.

    {"kind":"leader_and_isr", … "index":%d, … "topic":"a", … "partition":0, …
    {"kind":"leader_and_isr", … "index":%d, … "topic":"a", … "partition":3, …
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from state.alike import AlikeDecision, Said, encoded, encoded_about, encoded_name, told_of
from state.canonical import LEADER_AND_ISR_RANK, STOP_REPLICA_RANK, Part, part_of
from state.decisions import KIND_RANK, HighWatermark, LeaderAndIsr, StopReplica, encode
from state.numbered_run import ReasonCount

# A run is never divided on its way to the sink.
RUN_DECISIONS_MAX = 1_024
_BLANK = b"%d"
_RANKS = {
    LeaderAndIsr: LEADER_AND_ISR_RANK,
    StopReplica: STOP_REPLICA_RANK,
    HighWatermark: KIND_RANK["high_watermark"],
}
_partition = attrgetter("partition")
# The end of a high watermark's text.
_WATERMARK = b'"partition":%d,"leader_epoch":%d,"high_watermark":%d}'

_Row = AlikeDecision | LeaderAndIsr | StopReplica | HighWatermark
_Key = tuple[int, int, str]


def parts_of(said: Iterable[Said]) -> list[Part]:
    """Encode decisions, as runs where there are several about one topic.

    If two have one place, both are parts of their own, so that ``parts_clash`` finds them.
    """
    parts: list[Part] = []
    rows: defaultdict[_Key, list[_Row]] = defaultdict(list)
    for one in said:
        if isinstance(one, AlikeDecision):
            pattern = one.pattern
            rank = LEADER_AND_ISR_RANK if pattern.has_partition_epoch else STOP_REPLICA_RANK
            rows[pattern.common.seq, rank, one.topic].append(one)
        elif isinstance(one, LeaderAndIsr | StopReplica | HighWatermark):
            rows[one.seq, _RANKS[type(one)], one.topic].append(one)
        else:
            parts.append(part_of(one))
    for key, some in rows.items():
        if len(some) == 1:
            parts.append(_single(key, some[0]))
        else:
            parts += _runs(key, some)
    return parts


def _single(key: _Key, row: _Row) -> Part:
    return Part(*key, row.partition, -1, encoded(row) if isinstance(row, AlikeDecision) else encode(row))


def _runs(key: _Key, rows: list[_Row]) -> Iterator[Part]:
    if len({row.partition for row in rows}) < len(rows):
        yield from map(part_of, rows)
        return
    rows.sort(key=_partition)
    for start in range(0, len(rows), RUN_DECISIONS_MAX):
        some = rows[start : start + RUN_DECISIONS_MAX]
        if len(some) == 1:
            yield _single(key, some[0])
        else:
            text = b"\n".join(_lines(key[2], some))
            yield Part(*key, some[0].partition, -1, text, len(some), _reasons(some))


def _reasons(rows: list[_Row]) -> tuple[ReasonCount, ...]:
    counts = Counter([row.pattern.told if isinstance(row, AlikeDecision) else told_of(row) for row in rows])
    return tuple([ReasonCount(*told, count) for told, count in sorted(counts.items())])


def _lines(topic: str, rows: list[_Row]) -> Iterator[bytes]:
    """Write each row with a blank for its index. A percent sign is doubled, because the text is a format."""
    if isinstance(rows[0], HighWatermark):
        yield from _watermark_lines(rows)
        return
    name, last_id, written_id = _escaped(encoded_name(topic)), None, b""
    for row in rows:
        if isinstance(row, AlikeDecision):
            if row.topic_id != last_id:
                last_id, written_id = row.topic_id, _escaped(encoded_name(row.topic_id))
            yield encoded_about(row, name, written_id, _BLANK)
        else:
            # The first "index" is the decision's own, because it comes before any free text.
            yield _escaped(encode(row)).replace(b'"index":0', b'"index":%d', 1)


def _watermark_lines(rows: list[_Row]) -> Iterator[bytes]:
    """Write the high watermarks of a topic, which differ in their last three values alone."""
    first = rows[0]
    blank = encode(replace(first, partition=0, leader_epoch=0, high_watermark=0))
    text = _escaped(blank.removesuffix(_WATERMARK % (0, 0, 0))).replace(b'"index":0', b'"index":%d', 1)
    for row in rows:
        assert isinstance(row, HighWatermark)
        yield text + _WATERMARK % (row.partition, row.leader_epoch, row.high_watermark)


def _escaped(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")
