"""A report of a shadow as sections, which are shown as text or as a page."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple

from msgspec import UnsetType

from cli.duration import duration, second
from cli.output import columns
from conf.counted import counted
from history.shadow_report import ShadowReport
from state.divergence import Divergence, Violation


class Section(NamedTuple):
    """A heading, sentences, and a table, which may have no rows."""

    title: str
    lines: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()


def sections_of(report: ShadowReport) -> Iterator[Section]:
    """Yield what a report says, the most important first."""
    yield Section(f"Cluster {report.cluster_id}", _span(report))
    if report.notes:
        rows = tuple((note.offset, note.what) for note in report.notes)
        said = "The log is damaged or has gaps, so what follows may be incomplete."
        yield Section("Gaps and damage", (said,), ("Offset", "What"), rows)
    yield _violations(report)
    yield _offline(report)
    yield _unclean(report)
    yield _elections(report)
    yield _brokers(report)
    yield _shrinks(report)
    yield _divergences(report)


def _span(report: ShadowReport) -> tuple[str, ...]:
    if report.last_offset < 0:
        return ("The log has no records.",)
    lasted = duration(report.last_ms - report.first_ms)
    return (
        f"From {second(report.first_ms)} to {second(report.last_ms)} ({lasted}), "
        f"offsets {report.first_offset} to {report.last_offset}.",
        f"At the end it has {counted(report.topics, 'topic')} with {counted(report.partitions, 'partition')}.",
        f"{counted(sum(report.causes.values()), 'operation')}: {_counts(report.causes)}.",
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{cause} {count}" for cause, count in _by_count(counts)) or "none"


def _by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _offline(report: ShadowReport) -> Section:
    rows = tuple(
        (
            f"{one.topic}-{one.partition}",
            second(one.from_ms),
            "until the end" if one.to_ms is None else second(one.to_ms),
            f"{one.lasted_ms / 1000:.1f} s",
            one.lost_by,
            one.offset,
        )
        for one in report.offline
    )
    said = _shown("Partitions were without a leader", "No partition was without a leader.", report.offline_count, rows)
    return Section("Offline", said, ("Partition", "From", "To", "Lasted", "Lost by", "Offset"), rows)


def _unclean(report: ShadowReport) -> Section:
    rows = tuple(
        (f"{one.topic}-{one.partition}", second(one.time_ms), one.leader, one.cause, one.offset)
        for one in report.unclean
    )
    said = _shown("Replicas that may lack records were elected", "None.", report.unclean_count, rows)
    return Section("Unclean elections", said, ("Partition", "At", "Leader", "Cause", "Offset"), rows)


def _shown(some: str, none: str, count: int, rows: tuple[tuple[object, ...], ...]) -> tuple[str, ...]:
    if count == 0:
        return (none,)
    shown = "" if len(rows) == count else f", of which {len(rows)} are shown"
    return (f"{some} {counted(count, 'time')}{shown}.",)


def _elections(report: ShadowReport) -> Section:
    rows = tuple(_by_count(report.elections))
    count = sum(report.elections.values())
    said = f"Partitions got another leader {counted(count, 'time')}." if count else "No partition got another leader."
    return Section("Elections", (said,), ("Cause", "Partitions"), rows)


def _brokers(report: ShadowReport) -> Section:
    worst = sorted(report.brokers.values(), key=lambda one: (-one.losses, one.broker))
    rows = tuple(
        (one.broker, one.losses, one.shutdowns, one.unclean_restarts, one.failed_directories, _counts(one.fenced))
        for one in worst
    )
    flapped = [str(one.broker) for one in worst if one.losses > 1]
    lines = (f"Lost more than once: {', '.join(flapped)}.",) if flapped else ()
    head = ("Broker", "Lost", "Shutdowns", "UncleanRestarts", "FailedDirectories", "Fenced")
    return Section("Brokers", lines if rows else ("No broker went away.",), head, rows)


def _shrinks(report: ShadowReport) -> Section:
    rows = tuple(_by_count(report.isr_shrinks)[:20])
    said = "Followers fell behind, so leaders removed them." if rows else "No follower fell behind."
    return Section("ISRs that shrank", (said,), ("Topic", "Times"), rows)


def _violations(report: ShadowReport) -> Section:
    rows = tuple((f"{one.topic}-{one.partition}", one.message, one.offset, _defect(one)) for one in report.violations)
    said = _shown("This was found", "Nothing.", report.violations_count, rows)
    return Section("What no controller may do", said, ("Partition", "What", "Offset", "LooksLike"), rows)


def _divergences(report: ShadowReport) -> Section:
    rows = tuple(
        (f"{one.topic}-{one.partition}", one.field, one.observed, one.predicted, one.rule, one.offset, _defect(one))
        for one in report.divergences
    )
    said = _shown("isrflow's rules would have decided otherwise", "Nothing.", report.divergences_count, rows)
    head = ("Partition", "Field", "Observed", "ByTheRules", "Cause", "Offset", "LooksLike")
    return Section("What isrflow's rules would have decided otherwise", said, head, rows)


def _defect(one: Divergence | Violation) -> str:
    return "-" if isinstance(one.defect, UnsetType) else one.defect


def text_of(report: ShadowReport) -> list[str]:
    """Return a report as lines of text."""
    lines: list[str] = []
    for section in sections_of(report):
        lines += ["", section.title, *(f"  {line}" for line in section.lines)]
        if section.rows:
            lines += [f"  {line}" for line in columns(section.head, section.rows)]
    return lines[1:]


def html_of(report: ShadowReport) -> str:
    """Return a report as a page that needs nothing else."""
    parts = [_HEAD.format(title=escape(f"Shadow of cluster {report.cluster_id}"))]
    for section in sections_of(report):
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [f"<p>{escape(line)}</p>" for line in section.lines]
        if section.rows:
            parts.append(f"<table><tr>{_cells('th', section.head)}</tr>")
            parts += [f"<tr>{_cells('td', row)}</tr>" for row in section.rows]
            parts.append("</table>")
    return "\n".join([*parts, "</body></html>"])


def _cells(tag: str, cells: tuple[object, ...]) -> str:
    return "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)


_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 15px system-ui, sans-serif; margin: 2em; }} td, th {{ padding: .1em .8em; text-align: left; }}
table {{ border-collapse: collapse; }} tr:nth-child(even) {{ background: #f2f2f2; }}</style></head><body>"""
