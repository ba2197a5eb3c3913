"""What was seen beside the metadata log, weighed against causes that the log leaves open."""

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from brokers.shadow.controller_log import ControllerLog, Reason, Saying
from brokers.shadow.fetch_times import FetchTimes
from state.observed_events import Cause, Certainty, Evidence, Observed

# A session ends after 9 s without a heartbeat by default, and a broker sends one every 2 s. A broker that runs fetches
# twice a second, also while it waits for its leave to stop.
SILENT_MS_MIN, ALIVE_MS_MAX = 5_000, 2_000
_FENCED = frozenset({Cause.session_expired, Cause.session_or_shutdown, Cause.shutdown_complete})
_CAUSES = {
    Reason.session: Cause.session_expired,
    Reason.immediate_shutdown: Cause.shutdown_complete,
    Reason.shutdown_granted: Cause.shutdown_complete,
    Reason.controlled_shutdown: Cause.controlled_shutdown,
}


class EvidenceFound:
    """When brokers fetched, and what controllers' logs say."""

    def __init__(self, fetch_times: FetchTimes, logs: Sequence[ControllerLog] = ()) -> None:
        self._fetch_times = fetch_times
        self._logs = logs

    def can_tell(self, event: Observed) -> bool:
        """Return whether evidence may say more about the cause of an operation than the metadata log."""
        return _broker_of(event) is not None and event.cause in (*_FENCED, Cause.controlled_shutdown)

    def weigh(self, event: Observed) -> Observed:
        """Return the operation with what speaks for its cause, which may become another one or a surer one."""
        broker = _broker_of(event)
        if broker is None or not self.can_tell(event):
            return event
        saying = self._saying(event, broker)
        silent_ms = (
            None if event.cause is Cause.controlled_shutdown else self._fetch_times.silent_ms(broker, event.time_ms)
        )
        evidence = replace(
            event.evidence or Evidence(),
            silent_ms=UNSET if silent_ms is None else silent_ms,
            log_line=UNSET if saying is None else saying.text,
        )
        if saying is not None:
            return _with(event, evidence, _CAUSES[saying.reason], Certainty.certain)
        if event.certainty is not Certainty.certain and silent_ms is not None:
            if silent_ms >= SILENT_MS_MIN:
                return _with(event, evidence, Cause.session_expired, Certainty.likely)
            if silent_ms < ALIVE_MS_MAX:
                return _with(event, evidence, Cause.shutdown_complete, Certainty.likely)
        return replace(event, evidence=evidence)

    def _saying(self, event: Observed, broker: int) -> Saying | None:
        """Return the newest saying that can be about the operation."""
        epoch = next((one.broker_epoch for one in event.results.brokers if one.broker == broker), None)
        is_fence = event.cause in _FENCED
        for log in self._logs:
            log.look()
            for saying in log.said(broker, epoch, event.time_ms):
                if is_fence == (saying.reason is not Reason.controlled_shutdown):
                    return saying
        return None


def _broker_of(event: Observed) -> int | None:
    told = event.evidence.broker if event.evidence else UNSET
    return told if isinstance(told, int) else None


def _with(event: Observed, evidence: Evidence, cause: Cause, certainty: Certainty) -> Observed:
    return replace(event, cause=cause, certainty=certainty, evidence=replace(evidence, alternatives=()))
