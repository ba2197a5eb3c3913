"""Requests to the engine: publish them and wait for the answers, or show what the rules would decide now."""

import contextlib
import functools
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec
from msgspec import UNSET

from bus.clock import now_ms
from bus.open_bus import open_bus
from cli.closed_output import check_open
from cli.committed import refuse_shadow
from cli.decision_line import text_of
from cli.dry_run import total_of, would_decide
from cli.errors import Refused, Unreachable
from cli.options import with_settings
from cli.output import format_option, show_json
from cli.principal import as_option, own_principal
from cli.publish import wait_for_decisions
from cli.topic_hints import TopicHints
from conf.settings import Settings
from history import log
from state.decisions import Answer, AnyDecision, PartitionResult, Rejected, decode

Request = dict[str, Any]
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
# How many faults of a plan are listed.
FAULTS_MAX = 100


class Ask(msgspec.Struct, frozen=True):
    """How requests of one command are made."""

    settings: Settings
    form: str
    dry_run: bool
    timeout_ms: int
    principal: str = msgspec.field(default_factory=own_principal)


def asks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dry-run, --timeout-ms, --as, --format and the settings to a command, and pass it an ``ask``."""

    @click.option(
        "--dry-run",
        is_flag=True,
        help="Print what the rules would decide now, and in the last line what that would do. Nothing is changed.",
    )
    @click.option(
        "--timeout-ms",
        type=click.IntRange(1, 86_400_000),
        default=30_000,
        show_default=True,
        help="How long to wait. The engine does not begin the request after this time.",
    )
    @as_option
    @format_option
    @with_settings
    @functools.wraps(function)
    def wrapped(
        settings: Settings, form: str, dry_run: bool, timeout_ms: int, principal: str | None, **rest: Any
    ) -> Any:
        check_open()
        return function(ask=Ask(settings, form, dry_run, timeout_ms, principal or own_principal()), **rest)

    return wrapped


def perform(
    ask: Ask,
    requests: Sequence[Request],
    done: Callable[[Answer], str],
    harmless: frozenset[str] = frozenset(),
    note: Callable[[AnyDecision], object] | None = None,
) -> None:
    """Make the requests and print the answers. With --dry-run, print the decisions that the rules would make, and
    what they would do in total.

    ``done`` describes an answer of which any part was done. ``harmless`` errors do not count as refusals. ``note`` gets
    all decisions on the requests before ``done`` is called. Raises ``Refused`` if a request is refused, and
    ``Unreachable`` if there is no answer in time.
    """
    decisions: Sequence[AnyDecision]
    if ask.dry_run:
        foreseen = would_decide(ask.settings, requests)
        decisions = foreseen.decisions
    else:
        decisions = answers_to(ask, requests, note)
    if ask.form == "json":
        show_json(decisions)
    else:
        for decision in decisions:
            if ask.dry_run:
                click.echo(f"would decide: {text_of(decision)}  ({decision.reason})")
            elif isinstance(decision, Answer) and _is_done(decision, harmless):
                click.echo(done(decision))
    if ask.dry_run:
        click.echo(total_of(foreseen), err=ask.form == "json")
    # A request whose answer refuses it may also be rejected as an event, with the same words.
    hints = TopicHints(ask.settings)
    refused = {one.seq for one in decisions if isinstance(one, Answer) and _refusals(one, harmless, hints)}
    told = [one for one in decisions if not (isinstance(one, Rejected) and one.seq in refused)]
    errors = [text for decision in told for text in _refusals(decision, harmless, hints)]
    if errors:
        raise Refused("\n".join(errors))


def check_all(
    ask: Ask,
    requests: Sequence[Request],
    faults: frozenset[str] | None = None,
    harmless: frozenset[str] = frozenset(),
) -> None:
    """Refuse all ``requests`` if the rules would refuse any of them now, as Kafka's tools refuse a plan as a whole.

    If ``faults`` are given, only these errors count, and ``harmless`` ones never do. Nothing is published. Raises
    ``Refused`` with every fault, and ``Unreachable``.
    """
    hints = TopicHints(ask.settings)
    found: list[str] = []
    for decision in would_decide(ask.settings, requests, warns=False).decisions:
        if isinstance(decision, Answer):
            found += [
                f"  {_named(row)}: {_told(row, hints)}"
                for row in _rows(decision)
                if row.error not in {"NONE", *harmless} and (faults is None or row.error in faults)
            ]
    if found:
        more = f"\n  and {len(found) - FAULTS_MAX} more" if len(found) > FAULTS_MAX else ""
        raise Refused("\n".join(["nothing is done, because some of it would be refused:", *found[:FAULTS_MAX]]) + more)


def _named(row: Answer | PartitionResult) -> str:
    """Name what a result is about: a partition, or a topic."""
    return f"{row.topic}" if row.partition is UNSET else f"{row.topic}-{row.partition}"


def _rows(answer: Answer) -> Sequence[Answer | PartitionResult]:
    """Return the results of the partitions of an answer; without any, the answer itself."""
    return (answer,) if answer.results is UNSET or not answer.results else answer.results


def _is_done(answer: Answer, harmless: frozenset[str]) -> bool:
    """Return whether any part of the request was done. The answer itself has the error of its first partition."""
    return any(one.error in {"NONE", *harmless} for one in (answer, *_rows(answer)))


def _refusals(decision: AnyDecision, harmless: frozenset[str], hints: TopicHints) -> list[str]:
    if isinstance(decision, Rejected):
        return [f"rejected: {decision.field}: {decision.message}"]
    if not isinstance(decision, Answer):
        return []
    return [
        f"{'' if row is decision else f'{row.topic}-{row.partition}: '}{_told(row, hints)}"
        for row in _rows(decision)
        if row.error not in {"NONE", *harmless}
    ]


def _told(row: Answer | PartitionResult, hints: TopicHints) -> str:
    hint = hints.about(row.topic or "") if row.error == UNKNOWN_TOPIC else ""
    return f"{row.error}{f': {row.message}' if row.message else ''}{hint}"


def answers_to(
    ask: Ask, requests: Sequence[Request], note: Callable[[AnyDecision], object] | None = None
) -> list[Answer | Rejected]:
    """Publish the requests together, and return their answers in order. ``note`` gets all decisions on the requests.

    Raises ``Unreachable`` if there is no answer in time.
    """
    settings = ask.settings
    with contextlib.closing(open_bus(settings.bus, create=False)) as bus:
        if any(request["kind"] != "raise_level" for request in requests):
            refuse_shadow(bus, settings.bus_name)
        bodies = [_encoded(request, ask) for request in requests]
        before = bus.last_seq()
        last = bus.publish(bodies)
        try:
            wait_for_decisions(bus, last, ask.timeout_ms)
        except Unreachable as error:
            lapses = "The engine will not begin it after this time"
            raise Unreachable(error.message.replace("The events stay published", lapses)) from error
        # Other events may lie between the requests. The bodies differ, because each request has its own id.
        ours = set(bodies)
        seqs = {event.seq for event in log.events(bus, before, last) if event.raw in ours}
        found = log.decisions(bus, before, last, passing_over=False)
        answers: list[Answer | Rejected] = []
        for decision in (decode(one.body) for one in found if one.seq in seqs):
            if note is not None:
                note(decision)
            if isinstance(decision, Answer | Rejected):
                answers.append(decision)
        return answers


def _encoded(request: Request, ask: Ask) -> bytes:
    """Write a request with the present time, who asks, and an id that the answer repeats."""
    named = {"request_id": f"cli-{secrets.token_hex(8)}", "principal": ask.principal}
    # A heartbeat takes no time-out, and ignores it.
    return msgspec.json.encode(request | {"time_ms": now_ms(), "timeout_ms": ask.timeout_ms} | named)
