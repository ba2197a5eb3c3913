"""Keep brokers' copies of an idle metadata log young (KIP-835, ``QuorumController.registerWriteNoOpRecord``).

A broker's lag metric is the age of the newest record, so an idle log needs an empty record now and then.
Kafka's controller writes one in every interval, even if it wrote other records. The rules do the same, because no shard
knows what the others decided.
"""

from msgspec.structs import replace

from controller_logic import gateways
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_no_op


def decide_no_op(batch: Batch) -> None:
    """Decide a ``no_op`` if metadata.max.idle.interval.ms has passed since the last one and a gateway leads.

    If the clock was set back, none follows until the clock has passed the last one or a new quorum epoch begins. So no
    two batches that hold only a ``no_op`` are equal, and a lost log can be matched with a broker's copy of it.
    """
    interval_ms = batch.state.policy.metadata_max_idle_interval_ms
    if interval_ms == 0 or not batch.state.quorum.is_kraft:
        return
    if batch.state.now_ms - batch.state.quorum.no_op_ms < interval_ms or not gateways.is_led(batch):
        return
    commit_no_op(batch, replace(batch.state.quorum, no_op_ms=batch.state.now_ms))
