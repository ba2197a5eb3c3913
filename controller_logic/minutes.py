"""The event at hand, and the decisions that were made of it and of those before it."""

from typing import Any

from controller_logic.routing import TOPIC_EVENTS
from controller_logic.topic_draft import TopicDraft
from state.broker import Broker
from state.cluster import Cluster
from state.decisions import (
    Answer,
    AnyDecision,
    BrokerDecision,
    Rejected,
    StopReplica,
    TopicDecision,
    broker_decision_of,
    leader_and_isr_of,
)
from state.events import AnyEvent, Logged, Malformed, Progress
from state.partition import Partition
from state.reason import Reason
from state.rules import ENGINE_CLOCK_RULES

_TOPIC_EVENTS = frozenset(TOPIC_EVENTS)
# Written as JSON a character takes up to six bytes, and no bus carries a decision of any length.
RAW_CHARS_MAX = 64 * 1024


def shown(raw: bytes) -> str:
    """Give an event's text for a ``rejected`` decision; of a longer one the beginning, and how long it was."""
    text = raw.decode(errors="backslashreplace")
    return text if len(text) <= RAW_CHARS_MAX else f"{text[:RAW_CHARS_MAX]}... ({len(raw)} bytes)"


class Minutes:
    """Keep the minutes of a batch.

    ``now`` is the engine's clock in ms, ``rules_version`` that of the rules in force. ``writes`` says whether
    this shard writes what all shards decide alike of the event at hand.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.seq = cluster.seq
        self.now = cluster.clock_ms
        self.clock_entered_ms = cluster.clock_entered_ms
        self.controller_epoch = cluster.controller_epoch
        self.rules_version = cluster.rules_version
        self.raw = b""
        self.entered_ms: int | None = None
        self.found_ms: int | None = None
        self.is_claim: bool | None = None
        self.event: AnyEvent | Malformed | Progress = Progress()
        self.writes = cluster.writes_cluster_decisions
        self.decisions: list[AnyDecision] = []

    def begin(self, logged: Logged) -> None:
        """Take up the next event of the log."""
        self.seq = logged.seq
        if self.rules_version < ENGINE_CLOCK_RULES and logged.clock_ms > self.now:
            self.now = logged.clock_ms
        self.raw = logged.raw
        self.entered_ms = logged.entered_ms
        self.found_ms = logged.found_ms
        self.is_claim = logged.is_claim
        self.event = logged.event
        self.writes = type(logged.event) in _TOPIC_EVENTS or self.cluster.writes_cluster_decisions

    def say_leader_and_isr(
        self,
        topic: TopicDraft,
        partition: Partition,
        reason: Reason,
        *,
        to: tuple[int, ...],
        is_new: bool = False,
        unclean: bool = False,
    ) -> None:
        """Tell the brokers in ``to``, and as metadata all others, who leads."""
        self.decisions.append(
            leader_and_isr_of(
                topic.topic,
                topic.topic_id,
                partition,
                seq=self.seq,
                controller_epoch=self.controller_epoch,
                time_ms=self.now,
                reason=reason,
                to=to,
                is_new=is_new,
                unclean=unclean,
            )
        )

    def say_stop_replica(
        self,
        topic: TopicDraft,
        partition: Partition,
        reason: Reason,
        *,
        leader_epoch: int,
        delete: bool,
        to: tuple[int, ...],
    ) -> None:
        """Tell brokers to stop following, and with ``delete`` to remove the log."""
        self.decisions.append(
            StopReplica(
                **self.said(reason),
                topic=topic.topic,
                topic_id=topic.topic_id,
                partition=partition.partition,
                leader_epoch=leader_epoch,
                delete=delete,
                to=to,
            )
        )

    def say_topic(self, topic: TopicDraft, reason: Reason) -> None:
        """Tell a topic's state and settings."""
        self.decisions.append(
            TopicDecision(
                **self.said(reason),
                topic=topic.topic,
                topic_id=topic.topic_id,
                state=topic.shown_state.name,
                config=topic.config,
            )
        )

    def say_broker(self, broker: Broker, reason: Reason) -> None:
        """Tell a broker's state, on the one shard that writes it."""
        if self.writes:
            self.decisions.append(self.broker_decision(broker, reason, broker.state.name))

    def broker_decision(self, broker: Broker, reason: Reason, state: str) -> BrokerDecision:
        """Make the decision that tells a broker's state."""
        return broker_decision_of(broker, state, **self.said(reason))

    # Answers

    def said(self, reason: Reason) -> dict[str, Any]:
        """Give the fields that every decision of the event at hand has."""
        return {
            "seq": self.seq,
            "controller_epoch": self.controller_epoch,
            "time_ms": self.now,
            "reason": reason,
        }

    def answer(self, error: str = "NONE", message: str = "", *, part: bool = False, **fields: Any) -> None:
        """Answer the event at hand; with ``part`` every shard gives its part, to be merged."""
        if not (self.writes or part):
            return
        event = self.event
        request = event.request if isinstance(event, Malformed) else str(event.__struct_config__.tag)
        self.decisions.append(
            Answer(
                **self.said(Reason.REQUEST_DONE if error == "NONE" else Reason.REQUEST_REFUSED),
                request_id=getattr(event, "request_id", None),
                request=request,
                error=error,
                message=message,
                **fields,
            )
        )

    def answer_if_asked(self, error: str = "NONE", message: str = "", **fields: Any) -> None:
        """Answer the event at hand if it carries a request id."""
        if getattr(self.event, "request_id", None) is not None:
            self.answer(error, message, **fields)

    def answer_committed(self, topic: TopicDraft, partition: Partition, error: str = "NONE", message: str = "") -> None:
        """Answer the event at hand with a partition as it is committed."""
        self.answer(
            error,
            message,
            topic=topic.topic,
            partition=partition.partition,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            partition_epoch=partition.partition_epoch,
        )

    def reject(self, field: str, message: str, reason: Reason) -> None:
        """Report the event at hand as one that cannot be obeyed."""
        if self.writes:
            raw = shown(self.raw)
            self.decisions.append(Rejected(**self.said(reason), raw=raw, field=field, message=message))

    def report_broken(self, topic: TopicDraft, partition: Partition, broken: list[str]) -> None:
        """Report a change that was withheld, for it would have broken these rules."""
        self.decisions.append(
            Rejected(
                **self.said(Reason.INVARIANT_BROKEN),
                raw=shown(self.raw),
                field="partition",
                message=f"{topic.topic}-{partition.partition} was left as it is: {'; '.join(broken)}",
                topic=topic.topic,
                partition=partition.partition,
            )
        )
