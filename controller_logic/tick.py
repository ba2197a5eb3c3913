"""The work that is due when time has passed."""

from controller_logic import balance, deletion, gateways, liveness, no_op, replica_log, watermark
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_expired
from state.entity import TOKEN, TOKEN_EXPIRY
from state.events import Tick


def tick(batch: Batch, _event: Tick) -> None:
    """Check the leading gateway, sessions, deletions, waits for logs, watermarks, balance, tokens and the idle log.

    A tick that fences a broker begins no deletion and ends no wait for logs, because one event may change a partition
    only once. What is due follows at the next tick.
    """
    gateways.watch_leader(batch)
    if not liveness.expire_sessions(batch):
        deletion.begin_waiting(batch)
        replica_log.recover(batch)
    watermark.advance_watermarks(batch)
    balance.check_balance(batch)
    _remove_expired_tokens(batch)
    no_op.decide_no_op(batch)
    batch.recorder.answer_if_requested()


def _remove_expired_tokens(batch: Batch) -> None:
    """Remove delegation tokens whose time is over (``DelegationTokenControlManager.sweepExpiredDelegationTokens``).

    Kafka's controller looks once an hour by its own clock. Every tick does here, by the clock of the event log, so a
    replay removes the same tokens at the same events.
    """
    now_ms = batch.state.now_ms
    expired = {
        entity_id: one
        for entity_id, one in batch.state.entities.items()
        if one.entity_type == TOKEN and int(one.values[TOKEN_EXPIRY]) < now_ms
    }
    if expired:
        commit_expired(batch, expired)
