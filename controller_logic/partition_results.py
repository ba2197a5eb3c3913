"""One answer that says what became of each of many partitions."""

from collections.abc import Sequence

from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from state.canonical import bounded, first_refusal
from state.decisions import PartitionResult


def result_of(topic: str, partition: int, refusal: Refusal | None) -> PartitionResult:
    """Return what an answer says of one partition."""
    error, message = refusal or ("NONE", "")
    return PartitionResult(topic=topic, partition=partition, error=error, message=message)


def answer_by_partition(batch: Batch, results: Sequence[PartitionResult], *, part: bool) -> None:
    """Answer with what became of partitions. The error of the whole is that of the first one that is refused.

    With ``part`` every shard gives its part, to be merged.
    """
    reported, left_out = bounded(results)
    error, message = first_refusal(reported)
    batch.recorder.answer(error, message, part=part, results=reported, results_left_out=left_out)
