"""Keep brokers' view of an idle metadata log young (KIP-835, ``QuorumController.registerWriteNoOpRecord``).

A broker tells how far behind it is by the age of the newest record, so where nothing is decided a record that says
nothing has to come now and then. Kafka's controller writes one in every interval, whatever else it wrote, and so it is
here: no shard knows what the others decided.
"""

from msgspec.structs import replace

from controller_logic import gateways
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_no_op
from state.metadata_format import NO_OP_FORMAT


def say_nothing(batch: Batch) -> None:
    """Decide nothing, where metadata.max.idle.interval.ms has passed since that was last done and a gateway leads.

    A clock that was taken back has to pass the last one again, or a new quorum epoch to begin: two batches of the log
    with nothing else in them are never the same, by which a log that was lost is found again in a broker's copy.
    """
    interval_ms = batch.state.policy.metadata_max_idle_interval_ms
    if interval_ms == 0 or batch.state.quorum.metadata_format < NO_OP_FORMAT:
        return
    if batch.state.now_ms - batch.state.quorum.no_op_ms < interval_ms or not gateways.is_led(batch):
        return
    commit_no_op(batch, replace(batch.state.quorum, no_op_ms=batch.state.now_ms))
