"""What controllers' logs say in words, weighed against the cause of an operation."""

from collections.abc import Iterator, Sequence

from msgspec import UnsetType
from msgspec.structs import replace

from brokers.shadow.controller_log import ControllerLog, Reason, Saying
from brokers.shadow.operation import Operation
from state.observed_events import Cause, Certainty

_CAUSES = {
    Reason.session: Cause.session_expired,
    Reason.immediate_shutdown: Cause.shutdown_complete,
    Reason.shutdown_granted: Cause.shutdown_complete,
    Reason.controlled_shutdown: Cause.controlled_shutdown,
}
_FENCES = frozenset({Cause.session_expired, Cause.session_or_shutdown, Cause.shutdown_complete})


def with_words(operation: Operation, logs: Sequence[ControllerLog]) -> Operation:
    """Return the operation with what a log says about it, which makes its cause certain, or another one."""
    saying = next(_sayings(operation, logs), None)
    if saying is None:
        return operation
    evidence = replace(operation.evidence, log_line=saying.text, alternatives=())
    return operation._replace(cause=_CAUSES[saying.reason], certainty=Certainty.certain, evidence=evidence)


def _sayings(operation: Operation, logs: Sequence[ControllerLog]) -> Iterator[Saying]:
    broker = operation.evidence.broker
    is_fence = operation.cause in _FENCES
    if isinstance(broker, UnsetType) or not (is_fence or operation.cause is Cause.controlled_shutdown):
        return
    epoch = next((row.broker_epoch for row in operation.results.brokers if row.broker == broker), None)
    for log in logs:
        log.look()
        for saying in log.said(broker, epoch, operation.time_ms):
            if is_fence == (saying.reason is not Reason.controlled_shutdown):
                yield saying
