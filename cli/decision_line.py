"""A decision as one line that a person reads."""

from cli.output import printable
from history.explanation import shown_time
from state.decisions import (
    AclsDecision,
    Answer,
    AnyDecision,
    BrokerDecision,
    ConfigDecision,
    Divergence,
    EntityDecision,
    HighWatermark,
    Imbalance,
    LeaderAndIsr,
    LevelDecision,
    ProducerIds,
    QuorumDecision,
    Rejected,
    StopReplica,
    TopicDecision,
    Violation,
)
from state.entity import named, shown_values
from state.reason import Reason
from state.secrets import shown_settings


def line_of(decision: AnyDecision) -> str:
    """Format a decision as one line, with its reason."""
    return f"{decision.seq:>6}  {reasoned(decision)}"


def timed_line_of(decision: AnyDecision) -> str:
    """Format a decision as one line, with its time by the engine's clock and its reason."""
    return f"{decision.seq:>6}  {shown_time(decision.time_ms)}  {reasoned(decision)}"


def reasoned(decision: AnyDecision) -> str:
    """Describe a decision with its reason and its principal."""
    by = f", by {printable(decision.principal)}" if decision.principal else ""
    return f"{text_of(decision)}  ({decision.reason}{by})"


def text_of(decision: AnyDecision) -> str:
    """Describe a decision without its seq and its reason."""
    match decision:
        case LeaderAndIsr():
            isr = ",".join(map(str, decision.isr))
            leader = decision.leader if decision.leader >= 0 else "none"
            what = f"{decision.topic}-{decision.partition} leader {leader} epoch {decision.leader_epoch} isr {isr}"
            what += " unclean" if decision.unclean else ""
        case BrokerDecision():
            what = f"broker {decision.broker} {decision.state}"
        case TopicDecision():
            what = f"topic {decision.topic} {decision.state}"
        case StopReplica():
            brokers = ",".join(map(str, decision.to))
            what = f"{decision.topic}-{decision.partition} {'leaves' if decision.delete else 'stops on'} {brokers}"
        case QuorumDecision():
            who = "controller" if decision.reason == Reason.CONTROLLER_CHANGED else "gateway"
            what = f"{who} {decision.voter} leads, quorum epoch {decision.quorum_epoch}"
        case HighWatermark() | ProducerIds() | Imbalance() | LevelDecision():
            what = _numbers(decision)
        case AclsDecision():
            what = f"ACLs: {len(decision.created)} created, {len(decision.deleted)} deleted"
        case ConfigDecision() | EntityDecision():
            what = _settings(decision)
        case Answer():
            refused = f"refused: {decision.error} {decision.message}".rstrip()
            what = f"{decision.request} {'done' if decision.error == 'NONE' else refused}"
        case Divergence() | Violation():
            what = _audited(decision)
        case Rejected():
            what = ": ".join(filter(None, ("rejected", decision.field, decision.message)))
        case _:
            what = str(decision.__struct_config__.tag)
    return printable(what)


def _audited(decision: Divergence | Violation) -> str:
    name = f"{decision.topic}-{decision.partition}"
    if isinstance(decision, Violation):
        return f"{name} violates '{decision.invariant}': {decision.message}"
    return f"{name} {decision.field} {_listed(decision.observed)}, by the rules {_listed(decision.predicted)}"


def _listed(value: int | tuple[int, ...]) -> str:
    return str(value) if isinstance(value, int) else ",".join(map(str, value)) or "none"


def _numbers(decision: HighWatermark | ProducerIds | Imbalance | LevelDecision) -> str:
    match decision:
        case LevelDecision():
            return f"level {decision.level}"
        case HighWatermark():
            return f"{decision.topic}-{decision.partition} high watermark {decision.high_watermark}"
        case ProducerIds():
            return f"producer ids below {decision.next_producer_id} taken by broker {decision.broker}"
        case Imbalance():
            counts = decision.counts.items()
            few = ", ".join(f"{not_led} of {all_} of broker {broker}" for broker, (not_led, all_) in counts if not_led)
            return f"not led by the preferred leader: {few or 'none'}"


def _settings(decision: ConfigDecision | EntityDecision) -> str:
    if isinstance(decision, ConfigDecision):
        config = shown_settings(decision.entity, decision.config)
        values = ",".join(f"{key}={value}" for key, value in config.items()) or "none"
        return f"{decision.entity}{f' {decision.name}' if decision.name else ''} settings {values}"
    shown = shown_values(decision.entity_type, decision.values)
    values = ",".join(f"{key}={value}" for key, value in shown.items()) or "none"
    return f"{decision.entity_type} of {named(decision.names)}: {values}"
