"""Decide a recorded log again."""

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, TypeVar

import click
import msgspec

from bus.interface import Entry, Image
from cli.errors import Unreachable, WrongUse
from cli.options import conf_option, set_option
from cli.parameters import InputFile, file_option
from cli.progress_bar import progress_bar
from conf.loader import from_sets, load, policy_text
from conf.settings import Settings
from history.envelope import opened
from history.snapshot_file import decode_snapshot
from history.state_at import states_of
from state.limits import TimeMs

BODIES_PER_WRITE = 1_000
_SEQ_DIGITS_MAX = len(str(2**63))


class _LineFacts(msgspec.Struct):
    seq: msgspec.Raw = msgspec.Raw(b"")
    entered_ms: msgspec.Raw = msgspec.Raw(b"null")
    is_claim: msgspec.Raw = msgspec.Raw(b"null")


_T = TypeVar("_T")
_line_facts = msgspec.json.Decoder(_LineFacts)
_entered: "msgspec.json.Decoder[int | None]" = msgspec.json.Decoder(TimeMs | None)
_is_claim: "msgspec.json.Decoder[bool | None]" = msgspec.json.Decoder(bool | None)


@click.command("replay")
@click.argument("events", type=InputFile(), metavar="EVENTS")
@click.option(
    "--out",
    type=click.Path(),
    required=True,
    metavar="DECISIONS",
    help="The file for the decisions, or - for standard output.",
)
@file_option("--state", metavar="STATE", help="The file for the final state.")
@click.option(
    "--engine",
    type=click.Choice(["rules", "spark"]),
    default="rules",
    help="What decides: the rules alone, or the Spark query.",
)
@file_option(
    "--from-snapshot",
    "snapshot",
    help="Start from the state that 'isrflow events --snapshot FILE' wrote, and pass over the events in it.",
)
@conf_option
@set_option
def command(
    events: BinaryIO,
    out: str,
    state: Path | None,
    snapshot: Path | None,
    engine: Literal["rules", "spark"],
    conf: Path | None,
    sets: tuple[str, ...],
) -> None:
    """Decide recorded events again, from an empty state or from a snapshot.

    EVENTS is a file, or - for standard input. Each line is an envelope that `isrflow events` prints, or an event.
    The `seq` of an event gives its place in the order; if it has none, its line number does. `entered_ms` and
    `is_claim` are facts that the bus recorded. They may be missing. The engine `rules` calls the rules alone.
    `spark` runs the query of `isrflow run` in small micro-batches. Both write the same bytes.

    The controller_started events in the log carry the settings that were in force. --set overrides them, and
    shows what the same events would have led to.

    \b
    Examples:
      isrflow replay events.jsonl --out decisions.jsonl --state state.json
      isrflow replay events.jsonl --out - --set unclean.leader.election.enable=true
      isrflow replay events.jsonl --out decisions.jsonl --engine spark
      isrflow events --from 3 --snapshot s.json | isrflow replay - --from-snapshot s.json --out decisions.jsonl
    """
    _keep_files(str(getattr(events, "name", "-")), snapshot, out, state)
    settings = load(conf, sets, environment=os.environ, cross_check=False)
    overrides = policy_text(from_sets(sets))
    entries = list(entries_of(events))
    image = Image(0, []) if snapshot is None else _snapshot_in(snapshot)
    later = [entry for entry in entries if entry.seq > image.seq]
    bodies, view = _decide(engine, later, settings, overrides, image)
    with _written(out), click.open_file(out, "wb") as stream:
        _write(stream, bodies)
    if state:
        with _written(state):
            state.write_bytes(msgspec.json.encode(view) + b"\n")


@contextlib.contextmanager
def _written(name: str | Path) -> Iterator[None]:
    """Raise ``WrongUse`` that names the file if it cannot be written. The system's error on a full disk names none."""
    try:
        yield
    except OSError as error:
        if name == "-" or isinstance(error, BrokenPipeError):
            # Reported as by the other commands that print.
            raise
        raise WrongUse(f"cannot write {name}: {error.strerror}") from error


def _keep_files(events: str, snapshot: Path | None, out: str, state: Path | None) -> None:
    """Refuse to write over a file that this command reads or writes. Devices are no files here."""
    kept: set[Path] = set()
    for name in (events, snapshot, out, state):
        path = Path(name or "-").resolve()
        if str(name or "-") == "-" or (path.exists() and not path.is_file()):
            continue
        if path in kept and name in (out, state):
            raise WrongUse(f"{name} would be written over: name another file for --out or --state")
        kept.add(path)


def _snapshot_in(path: Path) -> Image:
    try:
        return decode_snapshot(path.read_bytes())
    except OSError as error:
        raise WrongUse(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise WrongUse(f"--from-snapshot {path}: {error}") from error


def _write(stream: IO[bytes], bodies: Iterable[bytes]) -> None:
    remaining = iter(bodies)
    while some := list(itertools.islice(remaining, BODIES_PER_WRITE)):
        stream.write(b"".join(body + b"\n" for body in some))
    stream.flush()


def entries_of(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Give each event of a file its seq. Blank lines are not events, but count as lines.

    Raises ``WrongUse`` with the line number if a seq does not rise.
    """
    last = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        entry = _enveloped(text, number) or _bare(text, number, last)
        if entry.seq <= last:
            raise WrongUse(f"line {number}: seq {entry.seq} follows seq {last}, but seqs must rise.")
        last = entry.seq
        yield entry


def _enveloped(text: bytes, number: int) -> Entry | None:
    try:
        return opened(text)
    except ValueError as error:
        raise WrongUse(f"line {number}: {error}.") from error


def _bare(text: bytes, number: int, last: int) -> Entry:
    """Read an event without an envelope. If only some lines have a seq, a line without one follows ``last``."""
    facts = _read_line_facts(text)
    seq = _own_seq(facts, number)
    return Entry(
        max(number, last + 1) if seq is None else seq,
        text,
        _recorded_fact(_entered, facts.entered_ms, number),
        _recorded_fact(_is_claim, facts.is_claim, number),
    )


def _read_line_facts(text: bytes) -> _LineFacts:
    try:
        return _line_facts.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _LineFacts()


def _own_seq(facts: _LineFacts, number: int) -> int | None:
    seq = bytes(facts.seq)
    if not seq:
        return None
    if not seq.isdigit() or len(seq) > _SEQ_DIGITS_MAX or not 0 < int(seq) < 2**63:
        raise WrongUse(f"line {number}: seq is {seq.decode(errors='replace')}; expected a positive integer.")
    return int(seq)


def _recorded_fact(decoder: "msgspec.json.Decoder[_T]", raw: msgspec.Raw, number: int) -> _T:
    """Read a fact that the bus recorded about an event. Return None if the line does not have it."""
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError as error:
        field = "entered_ms" if decoder is _entered else "is_claim"
        raise WrongUse(f"line {number}: {field} is {bytes(raw).decode(errors='replace')}: {error}.") from error


def _decide(
    engine: str, entries: list[Entry], settings: Settings, overrides: dict[str, str], image: Image
) -> tuple[Iterable[bytes], dict[str, Any]]:
    if engine == "spark":
        # Importing Spark takes seconds, so a replay through the rules alone does not pay for it.
        from streaming.replay import replay

        try:
            return replay(entries, settings, overrides, image=image)
        except (TimeoutError, RuntimeError) as error:
            raise Unreachable(f"the Spark engine gave up: {error}") from error
    from controller_logic.replay import decide

    with progress_bar("deciding", len(entries)) as done:
        decided = decide(entries, settings.policy, overrides=overrides, states=states_of(image), on_batch=done)
    return (body for _, _, body in decided.decisions), decided.view()
