"""The level: which decisions, state and records may be written (``state.level``).

It rises when an operator asks for it, as Kafka's ``metadata.version`` does (KIP-584), and only if every process that
the rules hear of supports it. Until then the previous release can be started again.
"""

from collections.abc import Iterator

from controller_logic import gateways
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_level
from state.events import RaiseLevel
from state.level import NO_LEVEL


def raise_level(batch: Batch, event: RaiseLevel) -> None:
    """Raise the level, if all processes support it. It never falls, because newer state may have been written."""
    if event.level < batch.state.level:
        batch.recorder.answer("INVALID_REQUEST", f"the level is {batch.state.level}, and never falls")
        return
    lacking = list(_lacking(batch, event.level))
    if lacking:
        message = f"level {event.level} is not supported by {', '.join(lacking)}"
        batch.recorder.answer("UNSUPPORTED_VERSION", message)
        return
    if event.level > batch.state.level:
        commit_level(batch, event.level)
    batch.recorder.answer()


def _lacking(batch: Batch, level: int) -> Iterator[str]:
    """Name the processes that do not support ``level``: the engine, live gateways, registered mock brokers."""
    if batch.state.engine_level < level:
        yield f"the engine ({batch.state.engine_level})"
    for _, gateway in sorted(batch.state.gateways.items()):
        if gateway.level < level and gateways.is_live(batch, gateway):
            yield f"gateway {gateway.gateway} ({gateway.level})"
    for _, broker in sorted(batch.state.brokers.items()):
        if NO_LEVEL != broker.level < level:
            yield f"broker {broker.broker} ({broker.level})"
