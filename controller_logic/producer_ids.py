"""Hand out blocks of producer ids, each id once (KIP-730, ``ProducerIdControlManager``)."""

from controller_logic import fencing
from controller_logic.draft import Draft
from state.decisions import ProducerIds
from state.events import AllocateProducerIds
from state.reason import Reason

# Kafka's ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE.
BLOCK_SIZE = 1_000
_MAX_ID = 2**63 - 1


def allocate(draft: Draft, event: AllocateProducerIds) -> None:
    """Give a registered broker the next block."""
    broker = fencing.in_its_epoch(draft, event.broker, event.broker_epoch)
    if broker is None:
        return
    start = draft.next_producer_id
    if start > _MAX_ID - BLOCK_SIZE:
        draft.answer("UNKNOWN_SERVER_ERROR", "there are no producer ids left", broker=event.broker)
        return
    draft.next_producer_id = start + BLOCK_SIZE
    if draft.writes:
        draft.decisions.append(
            ProducerIds(
                **draft.said(Reason.PRODUCER_IDS_ALLOCATED),
                broker=broker.broker,
                broker_epoch=broker.broker_epoch,
                next_producer_id=draft.next_producer_id,
            )
        )
    draft.answer(broker=broker.broker, producer_id_start=start, producer_id_len=BLOCK_SIZE)
