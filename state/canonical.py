"""The canonical order of decisions: merge what the shards say about one event, then number it.

The problem: (``seq``, ``index``) identifies a decision, and a repeated batch must write the same ones. But shards
decide apart, their outcomes come in any order, and the number of shards is a setting.

The insight: a decision's place follows from its content alone: seq, kind, topic or entity, partition, broker. So
sorting by place gives the same order for any number of shards. Parts in one place are merged into one decision, and the
index counts the places of one seq.

    shard 0                           shard 1                           number()
    7 leader_and_isr a-0              7 leader_and_isr b-0              7,0 leader_and_isr a-0
    7 answer, 2 remaining             7 answer, 1 remaining             7,1 leader_and_isr b-0
                                                                        7,2 answer, 3 remaining

Only a few kinds can be merged: answers, brokers, counts of imbalance, and rejections. If two other decisions of one
shard are in one place, ``parts_clash`` finds it before they leave the shard.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import msgspec
from msgspec import UNSET, UnsetType

from state.columns_in_order import in_order
from state.decisions import KIND_RANK, Answer, AnyDecision, BrokerDecision, Imbalance, PartitionResult, decode, encode
from state.numbered_run import NumberedRun, flat
from state.part import Part
from state.reason import Reason

# A bus bounds the size of a decision, and an answer is one.
RESULTS_MAX = 10_000


def parts_clash(parts: Iterable[Part]) -> bool:
    """Return whether two parts of one shard are in one place and cannot be merged."""
    places = [_place(part) for part in parts if part[1] not in _MERGED_RANKS]
    return len(set(places)) < len(places)


def number(parts: Iterable[Part]) -> list[tuple[int, int, bytes]]:
    """Order, merge and number parts: (seq, index, JSON text with that index)."""
    return flat(numbered_runs(parts))


def numbered_runs(parts: Iterable[Part]) -> list[NumberedRun]:
    """Order, merge and number parts. Runs stay runs, and any other decision becomes a run of its own.

    Never raises, because the same batch would come again after each restart. Callers check ``parts_clash`` first.
    """
    numbered: list[NumberedRun] = []
    seq, index = -1, 0
    for part in _merged(_in_order(parts)):
        if part.seq != seq:
            seq, index = part.seq, 0
        # The first "index" is the decision's own, because it comes before any free text.
        text = part.body if index == 0 else part.body.replace(b'"index":0', b'"index":%d' % index, 1)
        run = NumberedRun(seq, index, text, part.columns, _KINDS[part.rank])
        numbered.append(run)
        index += run.decisions
    return numbered


_KINDS = [kind.encode() for kind in KIND_RANK]
_place = itemgetter(0, 1, 2, 3, 4)
_event_and_kind = itemgetter(0, 1)

_IMBALANCE_RANK = KIND_RANK["imbalance"]
_REJECTED_RANK = KIND_RANK["rejected"]
_ADDED_UP_RANKS = frozenset({KIND_RANK["answer"], KIND_RANK["broker"]})
_MERGED_RANKS = _ADDED_UP_RANKS | {_IMBALANCE_RANK, _REJECTED_RANK}


def _in_order(parts: Iterable[Part]) -> Iterator[Part]:
    for _, same in groupby(sorted(parts, key=_place), key=_event_and_kind):
        some = list(same)
        if len(some) > 1 and any(part.columns for part in some):
            yield from in_order(some)
        else:
            yield from some


def _merged(ordered: Iterable[Part]) -> Iterator[Part]:
    waiting: list[Part] = []
    for part in ordered:
        if part.rank not in _MERGED_RANKS:
            if waiting:
                yield from _said(waiting)
                waiting = []
            yield part
            continue
        if waiting and _place(part) != _place(waiting[0]):
            yield from _said(waiting)
            waiting = []
        waiting.append(part)
    if waiting:
        yield from _said(waiting)


def _said(parts: list[Part]) -> Iterator[Part]:
    """Merge the parts of one place. Counts that show no imbalance give no decision."""
    rank = parts[0].rank
    if rank == _IMBALANCE_RANK:
        merged = _one_imbalance([d for part in parts if isinstance(d := decode(part.body), Imbalance)])
        if any(not_led for not_led, _ in merged.counts.values()):
            yield parts[0]._replace(body=encode(merged))
    elif len(parts) > 1 and rank == _REJECTED_RANK:
        yield from _one_of_each_reason(parts)
    elif len(parts) > 1 and rank in _ADDED_UP_RANKS:
        yield _one(parts)
    else:
        yield from parts


def _one_of_each_reason(parts: list[Part]) -> Iterable[Part]:
    """Keep one part for each reason: several shards may fail on an event, and one may refuse it."""
    said: dict[str, Part] = {}
    for part in sorted(parts):
        said.setdefault(decode(part.body).reason, part)
    return [said[reason] for reason in sorted(said)]


def _one(parts: list[Part]) -> Part:
    decisions = [decode(part.body) for part in parts]
    first = decisions[0]
    if isinstance(first, Answer):
        merged: AnyDecision = _one_answer([d for d in decisions if isinstance(d, Answer)])
    else:
        merged = _one_broker([d for d in decisions if isinstance(d, BrokerDecision)])
    return parts[0]._replace(body=encode(merged))


def _one_imbalance(decisions: list[Imbalance]) -> Imbalance:
    """Add up the shards' counts, broker by broker."""
    counts: dict[int, tuple[int, int]] = {}
    for decision in decisions:
        for broker, (not_led, all_of_it) in decision.counts.items():
            former = counts.get(broker, (0, 0))
            counts[broker] = (former[0] + not_led, former[1] + all_of_it)
    return msgspec.structs.replace(decisions[0], counts=dict(sorted(counts.items())))


def _one_answer(answers: list[Answer]) -> Answer:
    """Add up what remains and join the results. The first refusal in order is the answer's error."""
    merged = min(answers, key=lambda a: (a.error == "NONE", a.error, a.message))
    remaining = [a.remaining for a in answers if a.remaining is not UNSET]
    if remaining:
        merged = msgspec.structs.replace(merged, remaining=sum(remaining))
    lists = [a.results for a in answers if a.results is not UNSET]
    if lists:
        before = sum(a.results_left_out for a in answers if a.results_left_out is not UNSET)
        results, left_out = bounded([result for part in lists for result in part], before)
        error, message = first_refusal(results)
        reason = Reason.REQUEST_DONE if error == "NONE" else Reason.REQUEST_REFUSED
        merged = msgspec.structs.replace(
            merged, results=results, error=error, message=message, reason=reason, results_left_out=left_out
        )
    return merged


def bounded(
    results: Sequence[PartitionResult], left_out: int = 0
) -> tuple[tuple[PartitionResult, ...], int | UnsetType]:
    """Sort results, and keep at most ``RESULTS_MAX``, refusals before successes. Return them and the number left out.

    The choice does not depend on the number of shards. ``left_out`` is how many the shards have left out already.
    """
    left_out += max(0, len(results) - RESULTS_MAX)
    if len(results) > RESULTS_MAX:
        results = sorted(results, key=lambda result: (result.error == "NONE", result))[:RESULTS_MAX]
    return tuple(sorted(results)), left_out or UNSET


def first_refusal(results: Sequence[PartitionResult]) -> tuple[str, str]:
    """Return the error and message of a whole request: those of its first refused partition."""
    for result in results:
        if result.error != "NONE":
            return result.error, result.message
    return "NONE", ""


def _one_broker(decisions: list[BrokerDecision]) -> BrokerDecision:
    """Add up what remains. The shutdown is allowed if no shard has anything left."""
    merged = decisions[0]
    remaining = sum(d.remaining for d in decisions if d.remaining is not UNSET)
    state = "controlled_shutdown" if remaining else "shutdown_allowed"
    return msgspec.structs.replace(merged, remaining=remaining, state=state)
