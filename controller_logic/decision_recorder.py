"""The decisions on the event at hand, and in whose name they are made.

Every decision carries the event's ``seq``, the controller epoch of the newest claim and the engine's clock. The
recorder adds them, so a rule names only what is its own: a reason, a partition, an error.

All shards decide alike about brokers and cluster-wide requests, and one of them must record it. ``writes`` is true on
that one: on shard 0, or for an event about one topic on the shard of that topic. What each shard decides for
its own topics (a partition's leader, its part of an answer) is always recorded; ``state.canonical`` merges it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from controller_logic.raw_text import shown
from controller_logic.routing import TOPIC_EVENTS
from controller_logic.working_state import WorkingState
from controller_logic.working_topic import WorkingTopic
from state.alike import WATERMARK, AlikeDecisions, Form, Row, Said, Saying, decisions_of, named, named_in_text
from state.broker import Broker, BrokerState
from state.decisions import (
    Answer,
    AnyDecision,
    BrokerDecision,
    ConfigDecision,
    Imbalance,
    Rejected,
    StopReplica,
    TopicDecision,
    broker_decision_of,
    leader_and_isr_of,
)
from state.events import AlterConfig, AnyEvent, Logged, Malformed, Progress
from state.partition import Partition, ReportedLog
from state.reason import Reason

_TOPIC_EVENTS = frozenset(TOPIC_EVENTS)


class DecisionRecorder:
    """The decisions of a batch so far."""

    def __init__(self, state: WorkingState) -> None:
        self._state = state
        # The event at hand.
        self.logged = Logged(0, 0, Progress(), b"")
        # Whether this shard records what all shards decide alike on the event at hand.
        self.writes = state.cluster.writes_cluster_decisions
        self.said: list[Said] = []
        # The decisions on the event at hand, by rank.
        self._alike: dict[int, AlikeDecisions] = {}
        # How many decisions the events before this one have led to.
        self._said_before = 0

    def begin(self, logged: Logged) -> None:
        self.logged = logged
        self._said_before = len(self.said)
        self._alike = {}
        self.writes = self._is_written_here(logged.event)

    def _is_written_here(self, event: AnyEvent | Malformed | Progress) -> bool:
        cluster = self._state.cluster
        if isinstance(event, AlterConfig) and event.entity == "topic" and event.name is not None:
            # All shards get it, and this topic's shard answers.
            return cluster.holds(event.name)
        return type(event) in _TOPIC_EVENTS or cluster.writes_cluster_decisions

    def said_now(self) -> list[AnyDecision]:
        """List the decisions about the event at hand, written out."""
        return decisions_of(self.said[self._said_before :])

    def name_admin(self, principal: str) -> None:
        """Add the admin who asked to the decisions about the event at hand."""
        self.said[self._said_before :] = named(self.said[self._said_before :], principal)

    def _common(self, reason: Reason) -> dict[str, Any]:
        """Return the fields that every decision about the event at hand has."""
        state = self._state
        return {
            "seq": state.seq,
            "controller_epoch": state.controller_epoch,
            "time_ms": state.now_ms,
            "reason": reason,
        }

    def say(self, kind: type[AnyDecision], reason: Reason, **fields: Any) -> None:
        """Record on one shard what all shards decide alike."""
        if self.writes:
            self.said.append(kind(**self._common(reason), **fields))

    # Partitions and topics

    def saying(self) -> Saying:
        """Return what the decisions that are now recorded have in common."""
        return Saying(self._state.seq, self._state.controller_epoch, self._state.now_ms)

    def say_alike(self, forms: Iterable[Form], saying: Saying, topic: WorkingTopic, partition: Partition) -> None:
        """Record the decisions that have these forms for a partition as it now stands."""
        for form in forms:
            alike = self._alike.get(form.rank)
            if alike is None or alike.saying != saying:
                alike = self._alike[form.rank] = AlikeDecisions(saying, form.rank, [])
                self.said.append(alike)
            epochs = (partition.leader_epoch, partition.partition_epoch)
            alike.rows.append((topic.named, partition.partition, form, partition.replicas, *epochs))

    def say_leader_and_isr(
        self,
        topic: WorkingTopic,
        partition: Partition,
        reason: Reason,
        *,
        to: tuple[int, ...],
        is_new: bool = False,
        unclean: bool = False,
        passed_over: dict[int, str] | None = None,
        directories: dict[int, str] | None = None,
        compared: tuple[ReportedLog, ...] = (),
    ) -> None:
        """Record who leads. The brokers in ``to`` must act on it; all others take it as metadata."""
        decision = leader_and_isr_of(
            topic.topic,
            topic.topic_id,
            partition,
            **self._common(reason),
            to=to,
            is_new=is_new,
            unclean=unclean,
            passed_over=passed_over or UNSET,
            directories=directories or UNSET,
        )
        if compared:
            logs = {log.broker: (log.last_written_epoch, log.log_end_offset) for log in compared}
            decision = replace(decision, compared_logs=logs)
        self.said.append(decision)

    def say_stop_replica(
        self,
        topic: WorkingTopic,
        partition: Partition,
        reason: Reason,
        *,
        leader_epoch: int,
        delete: bool,
        to: tuple[int, ...],
    ) -> None:
        """Record that the brokers in ``to`` must stop following, and with ``delete`` must remove the log."""
        self.said.append(
            StopReplica(
                **self._common(reason),
                topic=topic.topic,
                topic_id=topic.topic_id,
                partition=partition.partition,
                leader_epoch=leader_epoch,
                delete=delete,
                to=to,
            )
        )

    def say_topic(self, topic: WorkingTopic, reason: Reason) -> None:
        self.said.append(
            TopicDecision(
                **self._common(reason),
                topic=topic.topic,
                topic_id=topic.topic_id,
                state=topic.shown_state.name,
                config=topic.config,
            )
        )

    def say_high_watermarks(self, topic: WorkingTopic, partitions: Collection[Partition]) -> None:
        """Record the high watermarks that some partitions have now, in the order of the partitions."""
        about = named_in_text(topic.topic, "")
        rows: list[Row] = [
            (about, partition.partition, WATERMARK, (), partition.leader_epoch, partition.high_watermark)
            for partition in partitions
        ]
        self.said.append(AlikeDecisions(self.saying(), WATERMARK.rank, rows))

    # The cluster

    def say_broker(self, broker: Broker, reason: Reason) -> None:
        if self.writes:
            self.said.append(self._broker(broker, reason, broker.state))

    def say_remaining(self, broker: Broker, remaining: int) -> None:
        """Record how many leaderships of this shard a broker in shutdown still has; the shards' parts are added up."""
        state = BrokerState.controlled_shutdown if remaining else BrokerState.shutdown_allowed
        self.said.append(replace(self._broker(broker, Reason.CONTROLLED_SHUTDOWN, state), remaining=remaining))

    def _broker(self, broker: Broker, reason: Reason, state: BrokerState) -> BrokerDecision:
        return broker_decision_of(broker, state.name, **self._common(reason))

    def say_config(self, entity: str, name: str | None, config: dict[str, str], **more: Any) -> None:
        """Record the settings of an entity as they now stand. Fields in ``more`` that are empty are left out."""
        if self.writes or entity == "topic":
            told: dict[str, Any] = {field: value or UNSET for field, value in more.items()}
            told |= self._common(Reason.CONFIG_CHANGED)
            self.said.append(ConfigDecision(**told, entity=entity, name=name, config=config))

    def say_imbalance(self, counts: Mapping[int, tuple[int, int]]) -> None:
        """Record what a balance check counted on this shard; the shards' parts are added up."""
        common = self._common(Reason.LEADER_BALANCE)
        self.said.append(Imbalance(**common, counts=dict(sorted(counts.items()))))

    # Answers

    def answer(
        self, error: str = "NONE", message: str = "", *, part: bool = False, of: Logged | None = None, **fields: Any
    ) -> None:
        """Answer the event at hand; with ``part`` every shard gives its part, to be merged.

        ``of`` is an earlier event of the same kind, which is answered only now.
        """
        if not (self.writes or part):
            return
        logged = of or self.logged
        event = logged.event
        request = event.request if isinstance(event, Malformed) else str(event.__struct_config__.tag)
        common = self._common(Reason.REQUEST_DONE if error == "NONE" else Reason.REQUEST_REFUSED)
        self.said.append(
            Answer(
                **common | {"seq": logged.seq},
                request_id=getattr(event, "request_id", None),
                request=request,
                error=error,
                message=message,
                **fields,
            )
        )

    def answer_if_requested(self, error: str = "NONE", message: str = "", **fields: Any) -> None:
        """Answer the event at hand if it carries a request id."""
        if getattr(self.logged.event, "request_id", None) is not None:
            self.answer(error, message, **fields)

    def reject(self, field: str, message: str, reason: Reason) -> None:
        """Record that the event at hand cannot be obeyed."""
        if self.writes:
            raw = shown(self.logged.raw)
            self.said.append(Rejected(**self._common(reason), raw=raw, field=field, message=message))

    def say_of_partition(
        self, kind: type[AnyDecision], reason: Reason, topic: WorkingTopic, partition: Partition, **fields: Any
    ) -> None:
        """Record something about one partition, on the shard that holds it."""
        told = self._common(reason) | {"topic": topic.topic, "partition": partition.partition} | fields
        self.said.append(kind(**told))

    def say_row_left_out(self, topic: str, partition: int, message: str) -> None:
        """Record that a row of the event at hand cannot be kept."""
        raw, common = shown(self.logged.raw), self._common(Reason.MALFORMED)
        field = "results.partitions"
        said = Rejected(**common, raw=raw, field=field, message=message, topic=topic, partition=partition)
        self.said.append(said)

    def say_withheld(self, topic: WorkingTopic, partition: Partition, broken: list[str]) -> None:
        """Record that a change was not made, because it would break the invariants in ``broken``."""
        self.said.append(
            Rejected(
                **self._common(Reason.INVARIANT_BROKEN),
                raw=shown(self.logged.raw),
                field="partition",
                message=f"{topic.topic}-{partition.partition} was left as it is: {'; '.join(broken)}",
                topic=topic.topic,
                partition=partition.partition,
            )
        )
