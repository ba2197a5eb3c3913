"""Remove delegation tokens that are past their time (``DelegationTokenControlManager.sweepExpiredDelegationTokens``).

Kafka's controller looks once an hour by its own clock. Here every tick does, by the clock of the event log, so a replay
removes the same tokens at the same events.
"""

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_expired
from state.entity import TOKEN, TOKEN_EXPIRY


def remove_expired(batch: Batch) -> None:
    """Remove each token whose time ended before now."""
    now_ms = batch.state.now_ms
    expired = {
        entity_id: one
        for entity_id, one in batch.state.entities.items()
        if one.entity_type == TOKEN and int(one.values[TOKEN_EXPIRY]) < now_ms
    }
    if expired:
        commit_expired(batch, expired)
