"""A comparison as lines: a table of counts, and a diff with - before what was, and + before what would be."""

from collections.abc import Iterator, Sequence

from conf.counted import counted
from history.comparison import Comparison, leadership_in_words, minutes
from history.explanation import shown_time
from history.tally import Election
from history.told_events import led_by, listed

DIFFERENCES_MAX = 20
_TOTALS = {
    "elections": "Elections",
    "unclean_elections": "Unclean elections",
    "minutes_offline": "Minutes offline",
    "records_at_risk": "Records at risk",
    "offline_at_the_end": "Offline at the end",
    "refused_isr_changes": "Refused ISR changes",
}


def text_of(comparison: Comparison, title: str, differences_max: int = DIFFERENCES_MAX) -> list[str]:
    """Return a comparison as lines, with up to ``differences_max`` entries in each part of the diff."""
    lines = [title, ""]
    if comparison.is_same:
        return [*lines, "Nothing would differ."]
    totals = [(_TOTALS[name], *pair) for name, pair in comparison.totals().items()]
    lines += _table("", totals)
    offline = [(topic, minutes(was), minutes(would)) for topic, was, would in comparison.offline_ms()]
    lines += _part("Minutes offline, by topic", _table("Topic", [row for row in offline if row[1] != row[2]]))
    leaders = [(str(broker), was, would) for broker, was, would in comparison.leaders()]
    lines += _part("Partitions led at the end, by broker", _table("Broker", leaders))
    lines += _part("Elections that differ", _elections(comparison, differences_max))
    lines += _part("Partitions that differ at the end", _partitions(comparison, differences_max))
    more = comparison.would.refused - comparison.was.refused
    if more > 0:
        lines += [
            "",
            counted(more, "more ISR change was refused", "more ISR changes were refused")
            + ", because the brokers on record answer decisions that were not made here.",
        ]
    return lines


def _part(title: str, lines: list[str]) -> list[str]:
    return ["", f"{title}:", *lines] if lines else []


def _table(head: str, rows: Sequence[tuple[str, float, float]]) -> list[str]:
    if not rows:
        return []
    table = [(head, "as it was", "what if", "")]
    table += [(name, _number(was), _number(would), _difference(was, would)) for name, was, would in rows]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(row[place].rjust(widths[place]) for place in (1, 2, 3))]).rstrip()
        for row in table
    ]


def _number(value: float) -> str:
    """Write a count with every digit, and minutes without more decimals than are meant."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _difference(was: float, would: float) -> str:
    return f"{'+' if would > was else ''}{_number(would - was)}" if would != was else ""


def _elections(comparison: Comparison, differences_max: int) -> list[str]:
    found = comparison.elections()
    lines: list[str] = []
    for one in found[:differences_max]:
        time_ms = (one.was or one.would)[0].time_ms
        lines.append(f"  {one.topic}-{one.partition} at seq {one.seq}, {shown_time(time_ms)}")
        lines += [f"    - {text}" for text in _told(one.was)]
        lines += [f"    + {text}" for text in _told(one.would)]
    return lines + _rest(len(found), differences_max)


def _told(elections: list[Election]) -> Iterator[str]:
    if not elections:
        yield "nothing changed"
    for one in elections:
        at_risk = f", unclean: {one.records_at_risk} records at risk" if one.unclean else ""
        yield f"{led_by(one.leader)}, ISR {listed(one.isr)} ({one.reason}){at_risk}"


def _partitions(comparison: Comparison, differences_max: int) -> list[str]:
    found = comparison.partitions()
    lines: list[str] = []
    for (topic, partition), was, would in found[:differences_max]:
        lines += [f"  {topic}-{partition}", f"    - {leadership_in_words(was)}", f"    + {leadership_in_words(would)}"]
    return lines + _rest(len(found), differences_max)


def _rest(count: int, shown_max: int) -> list[str]:
    return [f"  and {count - shown_max} more; --format json has all"] if count > shown_max else []
