"""Hand out blocks of producer ids, each id once (KIP-730, ``ProducerIdControlManager``)."""

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_producer_ids
from state.events import AllocateProducerIds
from state.ids import PRODUCER_IDS_PER_BLOCK

_MAX_ID = 2**63 - 1


def allocate(batch: Batch, event: AllocateProducerIds) -> None:
    """Give a registered broker the next block."""
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is None:
        return
    start = max(batch.state.next_producer_id, event.first_id_min)
    if start > _MAX_ID - PRODUCER_IDS_PER_BLOCK:
        batch.recorder.answer("UNKNOWN_SERVER_ERROR", "there are no producer ids left", broker=event.broker)
        return
    commit_producer_ids(batch, broker, start + PRODUCER_IDS_PER_BLOCK)
    batch.recorder.answer(broker=broker.broker, producer_id_start=start, producer_id_len=PRODUCER_IDS_PER_BLOCK)
