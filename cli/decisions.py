"""Print the decision log."""

import time
from collections.abc import Iterator
from functools import partial

import click
from click.core import ParameterSource

from bus.interface import AFTER_ALL_OF, Bus, Decided
from cli.closed_output import check_reader
from cli.decision_groups import group_line, grouped, whole_events
from cli.decision_line import timed_line_of
from cli.errors import WrongUse
from cli.log_filters import POLL_INTERVAL_S, TAIL_MAX, Wanted, last_of, print_pages
from cli.moment import seq_named
from cli.options import existing_bus, with_settings
from cli.output import text_option, write_lines
from cli.parameters import NearChoice
from cli.topic_argument import topic_filter
from cli.topic_hints import hint_at
from conf.settings import Settings
from history import log
from history.moment import first_seq_since
from history.reach import oldest_seq
from state.decisions import KIND_RANK, decode
from state.reason import Reason
from state.secrets import without_secrets

DECISIONS_PER_READ = 5_000
SEQ_MAX = 2**63 - 1


@click.command("decisions")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new decisions as they are written.")
@click.option("--from", "from_seq", type=click.IntRange(0, SEQ_MAX), metavar="SEQ", help="Start with this event.")
@click.option("--since", metavar="TIME", help="Start with the events since a time, or how long ago: 10m.")
@click.option("--tail", type=click.IntRange(min=1, max=TAIL_MAX), metavar="N", help="Start with the last N decisions.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N decisions.")
@click.option(
    "--kind", "kinds", multiple=True, type=NearChoice(list(KIND_RANK)), help="Only this kind. May be repeated."
)
@topic_filter("Only decisions about this topic.")
@click.option(
    "--reason",
    "reasons",
    multiple=True,
    type=NearChoice([str(reason.value) for reason in Reason]),
    metavar="REASON",
    help="Only with this reason, such as LEADER_FENCED. May be repeated.",
)
@click.option("--group", "groups", is_flag=True, help="One line to read for all that an event led to.")
@text_option("Lines of JSON as they were written, or lines to read.")
@with_settings
def command(
    settings: Settings,
    follow: bool,
    from_seq: int | None,
    since: str | None,
    tail: int | None,
    limit: int | None,
    kinds: tuple[str, ...],
    topic: str | None,
    reasons: tuple[str, ...],
    groups: bool,
    form: str,
) -> None:
    """Print decisions, ordered by (seq, index).

    Those about a topic are printed without its high watermarks, unless --kind high_watermark asks for them.

    \b
    Examples:
      isrflow decisions --from 1 --limit 20
      isrflow decisions --tail 10 --format text
      isrflow decisions --since 1h --reason LEADER_FENCED --reason BROKER_SESSION_EXPIRED
      isrflow decisions --follow --kind leader_and_isr --topic orders
      isrflow decisions --group --since 1h
    """
    is_given = click.get_current_context().get_parameter_source("form") is ParameterSource.COMMANDLINE
    if groups and is_given and form != "text":
        raise WrongUse("--group excludes --format json: lines of JSON are single decisions.")
    if from_seq is not None and since is not None:
        raise WrongUse("--from and --since both say where to start: give one of them.")
    wanted = Wanted(kinds, topic, reasons)
    with existing_bus(settings) as bus:
        first = seq_named(bus, "--since", since, first_seq_since) if since is not None else from_seq or 0
        if from_seq is not None or since is not None:
            _say_what_is_gone(bus, first)
        if follow and topic is not None:
            # Nothing may ever come.
            hint_at(settings, topic)
        batches = _batches(bus, first, follow, tail, wanted)
        if groups:
            batches = whole_events(batches)
        show = _show_groups if groups else partial(_show, form=form)
        if not print_pages(batches, limit, show) and topic is not None:
            hint_at(settings, topic)


def _batches(bus: Bus, first: int, follow: bool, tail: int | None, wanted: Wanted) -> Iterator[list[Decided]]:
    after = (first - 1, AFTER_ALL_OF)
    if tail is not None:
        decided_seq = bus.decided_seq()
        yield _last(bus, first, decided_seq, tail, wanted)
        if not follow:
            return
        after = (decided_seq, AFTER_ALL_OF)
    while True:
        batch = bus.decisions(after, DECISIONS_PER_READ, passing_over=True)
        if batch:
            after = (batch[-1].seq, batch[-1].idx)
            yield [decided for decided in batch if wanted.takes(decided.body)]
        elif follow:
            check_reader()
            # Says that everything up to here is complete.
            yield []
            time.sleep(POLL_INTERVAL_S)
        else:
            return


def _last(bus: Bus, first: int, through: int, count: int, wanted: Wanted) -> list[Decided]:
    def between(after: int, through: int) -> Iterator[Decided]:
        return (one for one in log.decisions(bus, after, through) if wanted.takes(one.body))

    return last_of(bus, between, first - 1, through, count)


def _say_what_is_gone(bus: Bus, first: int) -> None:
    """Warn on standard error if retention has removed decisions from ``first`` on."""
    oldest, kept_after = oldest_seq(bus), bus.kept_after()
    if oldest is not None and first <= kept_after:
        click.echo(
            f"The oldest decision that is left is on event {oldest}. Up to event {kept_after} only decisions that "
            "changed the cluster are left (history.ms, retention.ms).",
            err=True,
        )


def _show_groups(batch: list[Decided]) -> None:
    decisions = (decode(without_secrets(decided.body)) for decided in batch)
    write_lines(group_line(group).encode() for group in grouped(decisions))


def _show(batch: list[Decided], form: str) -> None:
    shown = (without_secrets(decided.body) for decided in batch)
    lines = shown if form == "json" else (timed_line_of(decode(body)).encode() for body in shown)
    write_lines(lines)
