"""What the rules would decide now, and what it would do to the cluster in one line."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from bus.clock import now_ms
from bus.image import read_clusters, read_image
from bus.interface import Entry, Image
from cli.committed import warn_if_old, without_state
from cli.options import existing_bus
from conf.counted import counted
from conf.settings import Settings
from controller_logic.guard import guarded_step
from controller_logic.replay import logged
from controller_logic.resharding import resharded
from state.canonical import number
from state.cluster import State
from state.decisions import AnyDecision, LeaderAndIsr, decode
from state.ids import NO_LEADER
from state.partition import Partition
from state.policy import Policy, for_topic
from state.reason import Reason
from state.risk import records_at_risk

# How many undecided events are decided first. A running engine is never further behind.
UNDECIDED_MAX = 100_000

_MOVES = "leader moves", "leaders move"
_OFFLINE = "partition goes offline", "partitions go offline"
_ONLINE = "partition comes online", "partitions come online"
_REFUSES = "partition refuses writes with acks=all", "partitions refuse writes with acks=all"
_SHRINKS, _GROWS = ("ISR shrinks", "ISRs shrink"), ("ISR grows", "ISRs grow")
_ADDED = "partition is added", "partitions are added"
_DELETED = "partition is deleted", "partitions are deleted"
_UNCLEAN = "election is unclean", "elections are unclean"
# Worst first.
_TOLD = (_OFFLINE, _REFUSES, _UNCLEAN, _MOVES, _SHRINKS, _ONLINE, _GROWS, _ADDED, _DELETED)


class Foreseen(NamedTuple):
    """What the rules would decide on requests, from the state as it is now."""

    before: State
    decisions: list[AnyDecision]


def would_decide(settings: Settings, requests: Sequence[Mapping[str, Any]], *, warns: bool = True) -> Foreseen:
    """Return what the rules would decide on the requests now. Nothing is published. Raises ``Unreachable``."""
    with existing_bus(settings) as bus:
        image = bus.image()
        if not image.pages:
            raise without_state(settings.bus_name)
        last = max(image.seq, bus.last_seq())
        through = min(last, image.seq + UNDECIDED_MAX)
        undecided = bus.read(image.seq, through) if through > image.seq else []
        state = _whole(image)
        if warns:
            warn_if_old(state.cluster, bus)
    state = guarded_step(state, list(logged(undecided)), Policy(), overrides={}).state
    texts = [msgspec.json.encode({"time_ms": now_ms(), "request_id": "dry-run", **request}) for request in requests]
    asked = [Entry(last + nth, text, now_ms()) for nth, text in enumerate(texts, start=1)]
    parts = guarded_step(state, list(logged(asked)), Policy(), overrides={}).parts
    return Foreseen(state, [decode(body) for _, _, body in number(parts)])


def _whole(image: Image) -> State:
    """Return the state in an image as the state of one shard that decides everything."""
    return resharded(read_clusters(image), read_image(image).topics, 1)[0]


def total_of(foreseen: Foreseen) -> str:
    """Sum up in one line what the decisions would do to the cluster."""
    state = foreseen.before
    counts = Counter[tuple[str, str]]()
    lost: list[int | None] = []
    # Each partition by what is decided on it last.
    last = {(one.topic, one.partition): one for one in foreseen.decisions if isinstance(one, LeaderAndIsr)}
    for (name, partition), decision in last.items():
        topic = state.topics.get(name)
        before = topic.partitions[partition] if topic and partition < len(topic.partitions) else None
        min_isr = for_topic(state.cluster.policy, topic.config if topic else {}).min_insync_replicas
        counts.update(_done(before, decision, min_isr))
        if decision.unclean and before is not None:
            lost.append(records_at_risk(before, decision.leader))
    done = [counted(counts[what], *what) for what in _TOLD if counts[what]] or ["no leader moves, and no ISR changes"]
    if lost:
        told = "an unknown number of" if None in lost else f"{sum(one or 0 for one in lost):,}"
        done.append(f"{told} records are at risk")
    return f"in total: {', '.join(done)}"


def _done(before: Partition | None, decision: LeaderAndIsr, min_isr: int) -> list[tuple[str, str]]:
    """List what a decision does to a partition. Without ``before`` the partition is new."""
    if before is None:
        return [_ADDED]
    if decision.reason is Reason.TOPIC_DELETED:
        return [_DELETED]
    was_led, is_led = before.leader != NO_LEADER, decision.leader != NO_LEADER
    accepted = was_led and len(before.isr) >= before.required_isr(min_isr)
    checks = (
        (_OFFLINE, was_led and not is_led),
        (_ONLINE, is_led and not was_led),
        (_MOVES, was_led and is_led and decision.leader != before.leader),
        (_REFUSES, accepted and is_led and len(decision.isr) < min(min_isr, len(decision.replicas))),
        (_UNCLEAN, decision.unclean),
        (_SHRINKS, not {*before.isr} <= {*decision.isr}),
        (_GROWS, {*decision.isr} > {*before.isr}),
    )
    return [what for what, is_so in checks if is_so]
