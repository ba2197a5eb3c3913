"""The last batches of idempotent producers, so that a batch sent twice is stored once (KIP-98)."""

import uuid
from collections import OrderedDict, deque
from typing import NamedTuple

from brokers.mock.log.batch import NO_PRODUCER_ID
from brokers.wire.batch_header import Batch
from brokers.wire.errors import ErrorCode, RefusedError

BATCHES_KEPT = 5
PRODUCERS_MAX = 10_000
_SEQUENCES = 2**31
# Above all ids that brokers have counted upwards from 0.
_PRODUCER_ID_MIN = 2**62
_RANDOM_HEX_DIGITS = 15


def new_producer_id() -> int:
    """Return a producer id that no broker has given out.

    It is random, because a broker with a new disk would count from the beginning again, and a new producer's records
    would be taken for those of an earlier producer with the same id.
    """
    # The first digits of a uuid are not all random.
    return _PRODUCER_ID_MIN + int(uuid.uuid4().hex[-_RANDOM_HEX_DIGITS:], 16)


class Written(NamedTuple):
    """One batch of a producer: its sequence numbers, and where it is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[Written] = deque(maxlen=BATCHES_KEPT)


class Producers:
    """The producers of one log. Beyond ``PRODUCERS_MAX``, the producer that was silent longest is dropped."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, _Producer] = OrderedDict()

    def check(self, batch: Batch) -> Written | None:
        """Return the stored batch that ``batch`` repeats; None if it is new.

        Raises ``RefusedError`` for an epoch or sequence that does not follow.
        """
        if batch.producer_id == NO_PRODUCER_ID:
            return None
        known = self._known.get(batch.producer_id)
        if known is None:
            return None
        if batch.producer_epoch < known.epoch:
            raise RefusedError(ErrorCode.INVALID_PRODUCER_EPOCH, f"{batch.producer_epoch} is older than {known.epoch}")
        if batch.producer_epoch > known.epoch:
            if batch.base_sequence != 0:
                raise RefusedError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "a new epoch begins at sequence 0")
            return None
        last_sequence = sequence_after(batch.base_sequence, batch.last_offset_delta)
        for written in known.batches:
            if (written.first_sequence, written.last_sequence) == (batch.base_sequence, last_sequence):
                return written
        expected = sequence_after(known.batches[-1].last_sequence, 1)
        if batch.base_sequence != expected:
            raise RefusedError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"{batch.base_sequence} came, {expected} was expected"
            )
        return None

    def note(self, batch: Batch) -> None:
        """Note a batch that is now in the log with its offsets."""
        if batch.producer_id == NO_PRODUCER_ID:
            return
        known = self._known.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self._known[batch.producer_id] = _Producer(batch.producer_epoch)
        last_sequence = sequence_after(batch.base_sequence, batch.last_offset_delta)
        known.batches.append(Written(batch.base_sequence, last_sequence, batch.base_offset, batch.last_offset))
        self._known.move_to_end(batch.producer_id)
        if len(self._known) > PRODUCERS_MAX:
            self._known.popitem(last=False)

    def clear(self) -> None:
        self._known.clear()


def sequence_after(sequence: int, steps: int) -> int:
    """Add ``steps`` to ``sequence``, with 0 after 2^31 - 1."""
    return (sequence + steps) % _SEQUENCES
