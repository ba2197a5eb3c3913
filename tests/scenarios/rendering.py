"""Render decisions as lines: one per decision, with what it changed."""

import re
from collections.abc import Iterable

from msgspec import UNSET

from state import decisions as d
from state.acl import WILDCARD, Acl
from state.entity import named, shown_values
from state.ids import NO_LEADER
from tests.scenarios.complaints import complaints_about

_ANSWERED = ("remaining", "leader", "leader_epoch", "partition_epoch", "isr", "assignment")


class Rendering:
    """A renderer that remembers what the decisions so far said about each partition and topic."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], d.LeaderAndIsr] = {}
        self.watermarks: dict[tuple[str, int], int] = {}
        self._controller_epoch = 0
        self._ids: list[str] = []

    def tell(self, body: bytes, *, quiet: bool) -> list[str]:
        """Return the lines of a decision; if ``quiet``, only unexpected ones."""
        decision = d.decode(body)
        lines = self._moved_controller(decision) + self._lines(decision)
        return [line for line in lines if line.startswith("!!") or _is_refused(decision)] if quiet else lines

    def _moved_controller(self, decision: d.AnyDecision) -> list[str]:
        before, self._controller_epoch = self._controller_epoch, decision.controller_epoch
        return [f"controller epoch {before} -> {self._controller_epoch}"] if before != self._controller_epoch else []

    def _lines(self, decision: d.AnyDecision) -> list[str]:
        match decision:
            case d.LeaderAndIsr():
                return self._leader_and_isr(decision)
            case d.StopReplica():
                how = "stop and delete" if decision.delete else "stop"
                epoch = f"epoch {decision.leader_epoch}"
                return [f"{_name(decision)} {how}, {epoch}   {decision.reason} to={listed(decision.to)}"]
            case d.TopicDecision():
                return [self._topic(decision)]
            case d.BrokerDecision():
                return [_broker(decision)]
            case d.HighWatermark():
                return [self._high_watermark(decision)]
            case d.Answer():
                return self._answer(decision)
            case d.Rejected():
                return [_rejected(decision)]
            case d.Imbalance():
                counts = [f"broker {broker} {count} of {among}" for broker, (count, among) in decision.counts.items()]
                return [f"not led by the preferred replica: {', '.join(counts)}"]
            case _:
                return _of_the_cluster(decision)

    def _leader_and_isr(self, after: d.LeaderAndIsr) -> list[str]:
        key = (after.topic, after.partition)
        before = self.partitions.get(key)
        if before is not None and before.topic_id != after.topic_id:
            before = None
        self.partitions[key] = after
        if before is None:
            self.watermarks.pop(key, None)
            text = f"new, leader {after.leader}, epoch {after.leader_epoch}, isr {listed(after.isr)}"
        else:
            text = ", ".join(_changes(before, after)) or f"as before, leader {after.leader}, epoch {after.leader_epoch}"
        is_elected = after.leader not in (NO_LEADER, before.leader if before else NO_LEADER)
        election = (" unclean" if after.unclean else " clean") if is_elected else ""
        logs = after.compared_logs or {}
        election += "".join(f" {broker}:{epoch}@{end}" for broker, (epoch, end) in logs.items())
        line = f"{_name(after)} {text}   {after.reason}{election} to={listed(after.to)}"
        return [line, *complaints_about(before, after)]

    def _topic(self, decision: d.TopicDecision) -> str:
        if decision.topic_id not in self._ids:
            self._ids.append(decision.topic_id)
        if decision.state == "deleted":
            self.partitions = {key: one for key, one in self.partitions.items() if key[0] != decision.topic}
        named = f"topic {decision.topic} (id {self._ids.index(decision.topic_id) + 1}) {decision.state}"
        return " ".join(filter(None, (named, settings(decision.config))))

    def _high_watermark(self, decision: d.HighWatermark) -> str:
        key = (decision.topic, decision.partition)
        before = self.watermarks.get(key, 0)
        self.watermarks[key] = decision.high_watermark
        return f"{_name(decision)} hw {before} -> {decision.high_watermark}"

    def _answer(self, answer: d.Answer) -> list[str]:
        subject = ""
        if answer.topic is not UNSET:
            subject = f" {answer.topic}" if answer.partition is UNSET else f" {answer.topic}-{answer.partition}"
        elif answer.broker is not UNSET:
            subject = f" {answer.broker}"
        asked = "" if answer.request_id is None else f" (request {answer.request_id})"
        message = f": {_shortened(answer.message)}" if answer.message else ""
        fields = [f"{name}={_value(value)}" for name in _ANSWERED if (value := getattr(answer, name)) is not UNSET]
        line = f"answer {answer.request}{subject}{asked} {answer.error}{message}"
        if answer.acls is not UNSET:
            fields.append(f"deleted={len(answer.acls)}")
        results = () if answer.results is UNSET else answer.results
        results = [
            f"  {_name(result)} {result.error}{': ' * bool(result.message)}{result.message}" for result in results
        ]
        return ["   ".join(filter(None, (line, " ".join(fields)))), *results]


def _of_the_cluster(decision: d.AnyDecision) -> list[str]:
    match decision:
        case d.ConfigDecision():
            who = " ".join(filter(None, (decision.entity, decision.name)))
            return [f"config {who}: {settings(decision.config) or 'nothing'}"]
        case d.QuorumDecision():
            return [f"gateway {decision.voter} leads, quorum epoch {decision.quorum_epoch}   {decision.reason}"]
        case d.Divergence():
            return [f"{_name(decision)} {decision.field} {decision.observed}, by the rules {decision.predicted}"]
        case d.Violation():
            return [f"{_name(decision)} violates {decision.invariant!r}: {decision.message}"]
        case d.LevelDecision():
            return [f"level {decision.level}   {decision.reason}"]
        case d.EntityDecision():
            values = settings(shown_values(decision.entity_type, decision.values))
            return [f"{decision.entity_type} of {named(decision.names)}: {values or 'nothing'}"]
        case d.AclsDecision():
            by = f"   by {decision.principal}" if decision.principal is not UNSET else ""
            changed = (("created", decision.created), ("deleted", decision.deleted))
            return [f"acl {how}: {acl_text(one)}{by}" for how, acls in changed for one in acls]
    raise AssertionError(f"no words for {decision}")


def acl_text(acl: Acl) -> str:
    """Return an ACL in one line."""
    where = "" if acl.host == WILDCARD else f" from {acl.host}"
    prefixed = "..." if acl.pattern_type == "PREFIXED" else ""
    of = f"{acl.resource_type} {acl.resource_name}{prefixed}"
    return f"{acl.permission_type} {acl.principal}{where} {acl.operation} {of}"


def _is_refused(decision: d.AnyDecision) -> bool:
    return isinstance(decision, d.Rejected) or (isinstance(decision, d.Answer) and decision.error != "NONE")


def _changes(before: d.LeaderAndIsr, after: d.LeaderAndIsr) -> list[str]:
    pairs = (
        ("leader", before.leader, after.leader),
        ("epoch", before.leader_epoch, after.leader_epoch),
        ("isr", listed(before.isr), listed(after.isr)),
        ("elr", listed(before.elr or ()), listed(after.elr or ())),
        ("last known", listed(before.last_known_elr or ()), listed(after.last_known_elr or ())),
        ("replicas", listed(before.replicas), listed(after.replicas)),
        ("adding", listed(before.adding_replicas), listed(after.adding_replicas)),
        ("removing", listed(before.removing_replicas), listed(after.removing_replicas)),
        ("recovery", before.leader_recovery_state, after.leader_recovery_state),
        *_directories(after),
        ("partition epoch", before.partition_epoch, after.partition_epoch),
    )
    return [f"{name} {one} -> {other}".replace("  ", " ") for name, one, other in pairs if one != other]


def _directories(after: d.LeaderAndIsr) -> list[tuple[str, str, str]]:
    return [] if after.directories is UNSET else [(f"replica {at}", "", one) for at, one in after.directories.items()]


def _broker(decision: d.BrokerDecision) -> str:
    text = f"broker {decision.broker} {decision.state} ({decision.reason})"
    rack = "" if decision.rack is None else f" rack={decision.rack}"
    listeners = "".join(f" {listener.host}:{listener.port}" for listener in decision.listeners)
    remaining = "" if decision.remaining is UNSET else f" remaining={decision.remaining}"
    lost = "" if decision.offline_log_dirs is UNSET else f" offline-dirs={','.join(decision.offline_log_dirs)}"
    cordoned = decision.cordoned_log_dirs
    shut = "" if cordoned is UNSET else f" cordoned-dirs={','.join(cordoned)}"
    return text + rack + listeners + remaining + lost + shut


def _rejected(decision: d.Rejected) -> str:
    return f"rejected, {decision.field or 'the text'}: {_shortened(decision.message)}   {decision.reason}"


def _shortened(message: str) -> str:
    """Cut a list of all kinds after the first, so that a new kind does not change every story."""
    return re.sub(r"(expected one of \w+, ).*", r"\1...", message)


def _name(decision: d.LeaderAndIsr | d.StopReplica | d.HighWatermark | d.PartitionResult) -> str:
    return f"{decision.topic}-{decision.partition}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ";".join(f"{key}:{listed(replicas)}" for key, replicas in value.items())
    return listed(value) if isinstance(value, tuple) else str(value)


def settings(config: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in config.items())


def listed(members: Iterable[int]) -> str:
    """Write a list of brokers as stories do."""
    return ",".join(map(str, members)) or "none"
