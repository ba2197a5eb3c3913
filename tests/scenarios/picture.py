"""Draw the log ends, and show the state of partitions and brokers."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from state.acl import Acl
from state.decisions import LeaderAndIsr
from tests.scenarios.rendering import acl_text, listed

WIDTH_MAX = 40


def chart(reported_ends: dict[int, int], high_watermark: int, decision: LeaderAndIsr, named: str) -> list[str]:
    """Draw each assigned replica's log as a bar to its end, divided at the high watermark."""
    ends = {broker: reported_ends[broker] for broker in sorted(reported_ends) if broker in decision.replicas}
    scale = max(1, -(-max([*ends.values(), high_watermark]) // WIDTH_MAX))
    bars = {broker: _bar(end // scale, high_watermark // scale) for broker, end in ends.items()}
    width = max(map(len, bars.values()), default=0)
    digits = max((len(str(end)) for end in ends.values()), default=0)
    return [
        f"  {named}{broker}: {bars[broker]:{width}}  {end:{digits}}{_role(broker, decision)}"
        for broker, end in ends.items()
    ]


def _bar(end: int, mark: int) -> str:
    if end < mark:
        return f"{'=' * end:{mark}}|"
    return "=" * mark + "|" + "=" * (end - mark - 1) + ">" * (end > mark)


def _role(broker: int, decision: LeaderAndIsr) -> str:
    if broker == decision.leader:
        return " leader"
    return "" if broker in decision.isr else " not in sync"


def acl_lines(view: dict[str, Any]) -> list[str]:
    """Return a line for each ACL, in order of their text."""
    listed = (msgspec.convert({key: one[key] for key in Acl.__struct_fields__}, Acl) for one in view.get("acls", ()))
    return sorted(f"acl {acl_text(one)}" for one in listed) or ["no acl"]


def partition_lines(view: dict[str, Any], topics: Sequence[str]) -> list[str]:
    """Return a line for each partition of ``topics``; an empty name means all topics."""
    wanted = [held for held in view["partitions"] if "" in topics or held["topic"] in topics]
    going = {held["topic"]: held["state"] for held in view["topics"] if held["state"] != "created"}
    return [_partition(held, going.get(held["topic"])) for held in wanted] or ["no partition"]


def _partition(held: dict[str, Any], topic_state: str | None) -> str:
    line = (
        f"{held['topic']}-{held['partition']} leader={held['leader']} epoch={held['leader_epoch']}"
        f" isr={listed(held['isr'])} replicas={listed(held['replicas'])} hw={held['high_watermark']}"
        f" partition-epoch={held['partition_epoch']}"
    )
    for name in ("elr", "last_known_elr"):
        if held.get(name):
            line += f" {name}={listed(held[name])}"
    for name in ("adding", "removing"):
        if held[f"{name}_replicas"]:
            line += f" {name}={listed(held[f'{name}_replicas'])}"
    unusual = [f"{key}={state}" for key, state in held["replica_states"].items() if state != "OnlineReplica"]
    states = [held["state"]] if held["state"] != "OnlinePartition" else []
    recovery = [held["leader_recovery_state"]] if held["leader_recovery_state"] != "RECOVERED" else []
    topic = [f"topic={topic_state}"] if topic_state else []
    places = [f"{replica} in {directory}" for replica, directory in held.get("directories", {}).items()]
    return " ".join([line, *recovery, *states, *unusual, *topic, *([f"({', '.join(places)})"] if places else [])])


def broker_line(view: dict[str, Any]) -> str:
    """Return all brokers in one line, by state."""
    by_state: dict[str, list[int]] = {}
    for held in view["brokers"]:
        by_state.setdefault(held["state"], []).append(held["broker"])
    return "; ".join(f"brokers {listed(by_state[state])} {state}" for state in _in_order(by_state)) or "no broker"


def _in_order(states: Iterable[str]) -> list[str]:
    return sorted(states, key=["active", "controlled_shutdown", "fenced"].index)
