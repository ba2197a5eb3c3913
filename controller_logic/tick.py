"""The work that is due when time has passed."""

from controller_logic import balance, deletion, gateways, liveness, no_op, tokens, watermark
from controller_logic.batch import Batch
from state.events import Tick


def tick(batch: Batch, _event: Tick) -> None:
    """Look at the leading gateway, sessions, deletions, watermarks, balance, tokens and the idle log, in this order.

    A tick that fences a broker begins no deletion, because one event may change a partition only once. A deletion that
    is due begins at the next tick.
    """
    gateways.watch_leader(batch)
    if not liveness.expire_sessions(batch):
        deletion.begin_waiting(batch)
    watermark.advance_watermarks(batch)
    balance.check_balance(batch)
    tokens.remove_expired(batch)
    no_op.decide_no_op(batch)
    batch.recorder.answer_if_requested()
