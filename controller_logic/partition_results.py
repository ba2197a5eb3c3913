"""Answers about partitions: the results of many, or one as it is committed."""

from collections.abc import Sequence

from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from controller_logic.working_topic import WorkingTopic
from state.canonical import bounded, first_refusal
from state.decisions import PartitionResult
from state.events import Logged
from state.partition import Partition


def result_of(topic: str, partition: int, refusal: Refusal | None) -> PartitionResult:
    """Return one partition's result."""
    error, message = refusal or ("NONE", "")
    return PartitionResult(topic=topic, partition=partition, error=error, message=message)


def answer_by_partition(
    batch: Batch, results: Sequence[PartitionResult], *, part: bool, of: Logged | None = None
) -> None:
    """Answer with the result of each partition. The first refused partition's error is the error of the whole answer.

    ``DecisionRecorder.answer`` describes ``part`` and ``of``.
    """
    reported, left_out = bounded(results)
    error, message = first_refusal(reported)
    batch.recorder.answer(error, message, part=part, of=of, results=reported, results_left_out=left_out)


def answer_committed(
    batch: Batch, topic: WorkingTopic, partition: Partition, error: str = "NONE", message: str = ""
) -> None:
    """Answer the event at hand with a partition as it is committed."""
    batch.recorder.answer(
        error,
        message,
        topic=topic.topic,
        partition=partition.partition,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        partition_epoch=partition.partition_epoch,
    )
