"""Show what would have been decided under other settings or events."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from bus.interface import Bus, Entry
from cli import killed
from cli.errors import WrongUse
from cli.event_lines import wrong_with
from cli.moment import check_span, seq_named
from cli.options import bus_option, conf_option, existing_bus, name_client_config, set_option
from cli.output import format_option, show_json, show_lines
from cli.parameters import InputFile
from cli.progress_bar import progress_bar
from conf.counted import counted
from conf.loader import from_sets, load, policy_text
from history import log
from history.comparison import Comparison, json_of
from history.comparison_text import text_of
from history.killed import killed as killed_partitions
from history.moment import first_seq_since
from history.observed_operations import seqs_of_operations
from history.reach import check_reached
from history.state_at import state_at
from history.what_if import Changes, as_it_was, as_it_would_be
from state.event_text import decode
from state.events import Malformed

_ENDS = (
    "What later operations left was taken over as observed, so on each partition the effect ends with the next "
    "operation on it."
)
# Each event is read three times: to decide it as it was, to look for balance checks, and to decide it with changes.
_PASSES = 3


@click.command("whatif")
@click.option(
    "--from", "start", metavar="SEQ|TIME", help="Begin with this event. Default: as far back as the bus goes."
)
@click.option("--to", "end", metavar="SEQ|TIME", help="End here. Default: with the last event that is decided.")
@click.option("--without-event", "without", multiple=True, type=int, metavar="SEQ", help="Leave out an event.")
@click.option(
    "--without-operation",
    "operations",
    multiple=True,
    type=int,
    metavar="OFFSET",
    help="On the shadow of a cluster: leave out the operation with this offset of the observed log.",
)
@click.option(
    "--add-event",
    "files",
    multiple=True,
    type=InputFile(),
    metavar="FILE",
    help="Add the events of a file, one JSON object a line. Each comes at its `seq`, after the recorded event of that "
    "seq if there is one. Without a `seq` it comes first.",
)
@click.option(
    "--kill",
    "kill",
    multiple=True,
    metavar="BROKER|rack:NAME",
    help="Show what would lead where if a broker, or all of a rack, were lost at the end. May be repeated.",
)
@format_option
@conf_option
@bus_option
@set_option
def command(
    start: str | None,
    end: str | None,
    without: tuple[int, ...],
    operations: tuple[int, ...],
    files: tuple[BinaryIO, ...],
    kill: tuple[str, ...],
    form: str,
    conf: Path | None,
    bus: str | None,
    sets: tuple[str, ...],
) -> None:
    """Decide recorded events again under other settings (--set) or with other events, and show what would differ:
    elections, time without a leader, leaders per broker, records at risk. With --kill, show what the loss of brokers
    would do now. Nothing on the bus changes.

    \b
    Examples:
      isrflow whatif --set unclean.leader.election.enable=true
      isrflow whatif --set broker.session.timeout.ms=30000 --from 10 --format json
      isrflow whatif --without-event 10
      isrflow whatif --kill 2
      isrflow whatif --kill 2 --kill 3 --set unclean.leader.election.enable=true --format json
    """
    overrides = policy_text(from_sets(sets))
    settings = load(conf, sets, bus=bus, environment=os.environ, cross_check=False)
    name_client_config(settings.kafka_client_config)
    if kill and (start is not None or without or operations or files):
        raise WrongUse("--kill needs a state only: only --to and --set may be named with it.")
    with existing_bus(settings) as found:
        if kill:
            _show_killed(found, kill, end, overrides, form)
            return
        after, through = _span(found, start, end)
        left_out = {*without, *_observed_seqs(found, operations, after, through)}
        changes = Changes(overrides, left_out, _added(files, after, through))
        if changes.is_nothing:
            raise WrongUse(_no_change(sets))
        _check_left_out(found, without, after, through)
        comparison = _compared(found, after, through, changes)
    what = {"from": after + 1, "to": through, "set": overrides, "without_events": sorted(without)}
    what["without_operations"] = sorted(operations)
    if operations:
        what["later_operations"] = "as observed"
    what["added_events"] = sum(map(len, changes.added.values()))
    if form == "json":
        show_json(json_of(comparison, what))
        return
    show_lines([*text_of(comparison, _title(what)), *(["", _ENDS] if operations else [])])


def _show_killed(bus: Bus, kill: Sequence[str], end: str | None, overrides: Mapping[str, str], form: str) -> None:
    """Show what the loss of brokers would do, by the state at the end."""
    states = state_at(bus, bus.decided_seq() if end is None else seq_named(bus, "--to", end))
    lost = killed.lost_brokers(states.states[0].cluster.brokers, kill)
    found = killed_partitions(states.states, lost, overrides)
    if form == "json":
        show_json(killed.document_of(found, lost, states.seq, overrides))
    else:
        show_lines(killed.text_of(found, lost, states.seq, overrides))


def _no_change(sets: tuple[str, ...]) -> str:
    if sets:
        return f"no rule reads {', '.join(sorted(from_sets(sets)))}, so nothing would be decided otherwise."
    return "name at least one change: --set, --without-event, --without-operation, --add-event or --kill."


def _compared(bus: Bus, after: int, through: int, changes: Changes) -> Comparison:
    states = state_at(bus, after).states
    with progress_bar("deciding", _PASSES * (through - after)) as advance:

        def events() -> Iterator[Entry]:
            done = after
            for page in log.whole_event_pages(bus, after, through):
                yield from page
                advance(page[-1].seq - done)
                done = page[-1].seq

        return Comparison(as_it_was(states, events), as_it_would_be(states, events, changes))


def _span(bus: Bus, start: str | None, end: str | None) -> tuple[int, int]:
    """Return two seqs: events after the first one, through the second one, are decided again.

    Raises ``BeyondReachError`` if the second one is not decided yet, because then there is nothing to compare with.
    """
    through = bus.decided_seq() if end is None else seq_named(bus, "--to", end)
    reach = check_reached(bus, through)
    after = reach.state_from if start is None else max(0, seq_named(bus, "--from", start, first_seq_since) - 1)
    check_span(start, end, after, through)
    return after, through


def _check_left_out(bus: Bus, without: Sequence[int], after: int, through: int) -> None:
    for seq in without:
        is_there = after < seq <= through and bus.recorded(seq - 1, seq, 1, 1)
        if not is_there:
            raise WrongUse(f"--without-event {seq}: there is no such event from {after + 1} through {through}.")


def _observed_seqs(bus: Bus, offsets: Sequence[int], after: int, through: int) -> Iterator[int]:
    """Yield the seqs of the events that tell of the operations at some offsets of the observed log."""
    found = seqs_of_operations(bus, offsets, after, through)
    for offset in offsets:
        if not found[offset]:
            span = f"from seq {after + 1} through seq {through}"
            raise WrongUse(f"--without-operation {offset}: no operation with it was observed {span}.")
        yield from found[offset]


class _Place(msgspec.Struct):
    seq: int | None = None


_place = msgspec.json.Decoder(_Place)


def _added(files: tuple[BinaryIO, ...], after: int, through: int) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for file in files:
        for number, line in enumerate(file, start=1):
            raw = line.strip()
            if raw:
                found.setdefault(_place_of(raw, f"{file.name}, line {number}", after, through), []).append(raw)
    return found


def _place_of(raw: bytes, where: str, after: int, through: int) -> int:
    event = decode(raw)
    if isinstance(event, Malformed):
        raise WrongUse(f"{where} {wrong_with(event, raw)}.")
    try:
        seq = _place.decode(raw).seq
    except msgspec.MsgspecError as error:
        raise WrongUse(f"{where}: seq: {error}.") from error
    if seq is None:
        return after
    if not after <= seq <= through:
        raise WrongUse(f"{where}: seq {seq} is not from {after} through {through}.")
    return seq


def _title(what: Mapping[str, Any]) -> str:
    parts = [f"{key}={value}" for key, value in what["set"].items()]
    parts += [f"without event {seq}" for seq in what["without_events"]]
    parts += [f"without the operation at offset {offset}" for offset in what["without_operations"]]
    if added := what["added_events"]:
        parts.append(f"with {counted(added, 'more event')}")
    return f"What if {', '.join(parts)}, from seq {what['from']} through seq {what['to']}:"
