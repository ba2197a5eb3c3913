"""One answer with the results of many partitions."""

from collections.abc import Sequence

from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from state.canonical import bounded, first_refusal
from state.decisions import PartitionResult


def result_of(topic: str, partition: int, refusal: Refusal | None) -> PartitionResult:
    """Return one partition's result."""
    error, message = refusal or ("NONE", "")
    return PartitionResult(topic=topic, partition=partition, error=error, message=message)


def answer_by_partition(batch: Batch, results: Sequence[PartitionResult], *, part: bool) -> None:
    """Answer with the result of each partition. The first refused partition's error is the error of the whole answer.

    With ``part`` every shard gives its part, to be merged.
    """
    reported, left_out = bounded(results)
    error, message = first_refusal(reported)
    batch.recorder.answer(error, message, part=part, results=reported, results_left_out=left_out)
