"""Why a partition is as it is, in sentences."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from bus.interface import Bus
from conf.counted import counted
from history.chain import SEQS_READ_MAX, Chain, Step, chain_of, offline_since
from history.reach import BeyondReachError
from history.state_at import state_at
from history.told_decisions import brokers, state_in_words, told, told_refusal
from history.told_events import told_event
from state import decisions as d
from state.event_text import decode
from state.events import Observed
from state.ids import NO_LEADER
from state.obstacle import Obstacle
from state.reason import Reason
from state.risk import records_at_risk
from state.secrets import shown_event

CHANGES_MAX = 20
_ORDER: dict[type[d.AnyDecision], int] = {
    d.BrokerDecision: 0,
    d.TopicDecision: 1,
    d.ConfigDecision: 2,
    d.LeaderAndIsr: 3,
    d.StopReplica: 4,
}
# A topic in one of these states has no leaders, and gets none.
_LEAVING = {"deleting", "ineligible"}


class ToldStep(NamedTuple):
    """One step of the chain in sentences."""

    seq: int
    # The engine's clock.
    time_ms: int
    sentences: list[str]
    # How many times in a row the same request was refused. Only the last refusal is told.
    times: int
    step: Step


class Explanation(NamedTuple):
    """Why a partition is as it is."""

    topic: str
    partition: int
    # As of this seq.
    seq: int
    summary: list[str]
    # Oldest first.
    steps: list[ToldStep]
    chain: Chain


def explain(
    bus: Bus, topic: str, partition: int, seq: int, changes_max: int = CHANGES_MAX, first: int = 0
) -> Explanation | None:
    """Explain a partition as of ``seq`` by its newest changes since ``first``; None if nothing is about it."""
    chain = chain_of(bus, topic, partition, seq, changes_max, first)
    if not chain.steps and chain.last is None:
        return None
    is_waiting = chain.last is not None and chain.last.leader == NO_LEADER
    gone = _unregistered(bus, seq, _awaited(chain.last)) if is_waiting and chain.last is not None else ()
    steps: list[ToldStep] = []
    before = chain.before
    unclean = [step for step in chain.steps if step.change is not None and step.change.unclean]
    for step in chain.steps:
        told_step = _told_step(step, before, topic, partition)
        # Only for the newest one, because a former state has to be rebuilt.
        if unclean and step is unclean[-1]:
            told_step.sentences.append(_records_at_risk(bus, step, topic, partition))
        steps.append(told_step)
        before = step.change or before
    summary = list(_summary(chain, topic, partition, seq, gone))
    return Explanation(topic, partition, seq, summary, _merged(steps), chain)


def _awaited(last: d.LeaderAndIsr) -> tuple[int, ...]:
    """Return the replicas that a partition without a leader waits for."""
    return last.isr or last.elr or last.last_known_elr or ()


def _unregistered(bus: Bus, seq: int, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Return the brokers in ``ids`` that were not registered as of ``seq``; none if that is no longer known."""
    try:
        registered = state_at(bus, seq).states[0].cluster.brokers
    except BeyondReachError:
        return ()
    return tuple([broker for broker in ids if broker not in registered])


def _records_at_risk(bus: Bus, step: Step, topic: str, partition: int) -> str:
    """Return a sentence on how many records an unclean election may have lost."""
    leader = NO_LEADER if step.change is None else step.change.leader
    try:
        former = next((one for one in state_at(bus, step.seq - 1).topics() if one.topic == topic), None)
    except BeyondReachError:
        return "How many records it may have lost is no longer known, because the state before it is gone."
    held = former is not None and partition < len(former.partitions)
    logs = step.change.compared_logs if step.change is not None else UNSET
    if former is not None and held and logs:
        end, committed = logs[leader][1], former.partitions[partition].high_watermark
        lost = counted(max(0, committed - end), "committed record")
        return (
            f"Lost at least: {lost}. The high watermark was {committed}, and the log of broker {leader} ends at {end}."
        )
    count = records_at_risk(former.partitions[partition], leader) if former is not None and held else None
    if count is None:
        return "How many records it may have lost is not known, because no replica had reported the end of its log."
    return f"Records at risk: {count:,}. The ISR had reported them, and broker {leader} had not."


def _told_step(step: Step, before: d.LeaderAndIsr | None, topic: str, partition: int) -> ToldStep:
    sentences = [told_event(step.raw)]
    for decision in sorted(_to_be_told(step), key=lambda one: _ORDER.get(type(one), len(_ORDER))):
        if isinstance(decision, d.Answer):
            sentences.append(told_refusal(decision, topic, partition))
        else:
            sentences += told(decision, before)
    return ToldStep(step.seq, step.decisions[0].time_ms, sentences, 1, step)


def _to_be_told(step: Step) -> list[d.AnyDecision]:
    """List the decisions that need a sentence. What an observed controller did to a broker is in the event's own."""
    is_observed = step.raw is not None and isinstance(decode(step.raw), Observed)
    return [one for one in step.decisions if not (is_observed and isinstance(one, d.BrokerDecision))]


def _merged(steps: Iterable[ToldStep]) -> list[ToldStep]:
    """Keep only the last of equal refusals in a row."""
    merged: list[ToldStep] = []
    for _, group in groupby(enumerate(steps), key=_sameness):
        same = [step for _, step in group]
        merged.append(same[-1]._replace(times=len(same)))
    return merged


def _sameness(numbered: tuple[int, ToldStep]) -> object:
    number, step = numbered
    only_refused = all(isinstance(one, d.Answer) for one in step.step.decisions)
    return tuple(step.sentences) if only_refused else number


def _summary(chain: Chain, topic: str, partition: int, seq: int, gone: tuple[int, ...]) -> Iterator[str]:
    name = f"{topic}-{partition}"
    last = chain.last
    # The topic's newest state, as far as it is known.
    state = ""
    for step in chain.steps:
        states = [one.state for one in step.decisions if isinstance(one, d.TopicDecision)]
        state = states[-1] if states else state
    is_gone = state == "deleted"
    if is_gone:
        yield f"{name} as of seq {seq}: its topic is gone."
    elif last is None and chain.is_cut:
        yield f"{name} as of seq {seq}: the newest {SEQS_READ_MAX:,} events about it do not say how it stands."
    elif last is None:
        yield f"{name} as of seq {seq}: it has had no leader yet, or its topic has no such partition."
    else:
        yield f"{name} as of seq {seq}: {state_in_words(last)}."
    is_leaving = state in _LEAVING or (last is not None and last.reason is Reason.TOPIC_DELETED)
    if is_leaving and not is_gone:
        yield "Its topic is being deleted."
    elif last is not None and last.leader == NO_LEADER and not is_gone:
        yield from _waiting(chain, last, gone)
    if chain.is_cut:
        yield f"Older changes were not read, because {SEQS_READ_MAX:,} newer events are about it."
    elif chain.has_older:
        yield "There are older changes: a greater --limit, or an earlier --from, shows more of them."
    elif chain.oldest_seq is not None:
        yield f"Its beginning is not known, because decisions go back only to seq {chain.oldest_seq}."


def _waiting(chain: Chain, last: d.LeaderAndIsr, gone: tuple[int, ...]) -> Iterator[str]:
    since = offline_since(chain)
    if since is not None:
        yield f"It has been without a leader since seq {since.seq} ({shown_time(since.decisions[0].time_ms)})."
    elr = last.elr or ()
    if last.isr or not (elr or last.last_known_elr):
        yield f"Only a replica in the ISR can be elected without losing records: it waits for {brokers(last.isr)}."
    elif elr:
        yield f"Only an eligible replica can be elected without losing records: it waits for {brokers(elr)}."
    else:
        yield (
            f"No replica is proven to have every committed record. It waits for {brokers(last.last_known_elr or ())}, "
            "which led last, and whose election may lose records."
        )
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        yield (
            f"{brokers(gone, capital=True)} {verb} no longer registered. Only a start under that id, or an unclean "
            "election, which loses records, ends the wait."
        )
    told = [step.change for step in chain.steps if since is not None and step.change and step.seq >= since.seq]
    bare = [broker for broker, obstacle in _newest_obstacles(told).items() if obstacle == Obstacle.LOG_LEFT_BEHIND]
    if bare:
        yield (
            f"Start {brokers(bare)} with the former log directory again. If it is gone, only an unclean election ends "
            "the wait, and records are lost."
        )


def _newest_obstacles(told: Iterable[d.LeaderAndIsr]) -> Mapping[int, str]:
    found: Mapping[int, str] = {}
    for change in told:
        found = found if change.passed_over is UNSET else change.passed_over
    return found


def shown_time(time_ms: int, timespec: str = "milliseconds") -> str:
    """Return a time as people and programs read it, in UTC. Beyond the year 9999 it is a number."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"


def text_of(explanation: Explanation) -> list[str]:
    lines = list(explanation.summary)
    for step in explanation.steps:
        times = f"  ({step.times} times)" if step.times > 1 else ""
        lines += ["", f"seq {step.seq}  {shown_time(step.time_ms)}{times}"]
        lines += [f"  {sentence}" for sentence in step.sentences]
    return lines


def json_of(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as a JSON object, with the events and decisions themselves."""
    return {
        "topic": explanation.topic,
        "partition": explanation.partition,
        "seq": explanation.seq,
        "summary": explanation.summary,
        "is_whole": explanation.chain.is_whole,
        "has_older": explanation.chain.has_older,
        "steps": [
            {
                "seq": step.seq,
                "time_ms": step.time_ms,
                "times": step.times,
                "sentences": step.sentences,
                "event": _event_of(step.step.raw),
                "decisions": [msgspec.Raw(d.encode(one)) for one in step.step.decisions],
            }
            for step in explanation.steps
        ],
    }


def _event_of(raw: bytes | None) -> Any:
    """Return an event's text as JSON without secrets, or as a string if it is not JSON."""
    if raw is None:
        return None
    try:
        return shown_event(msgspec.json.decode(raw))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return raw.decode(errors="backslashreplace")
