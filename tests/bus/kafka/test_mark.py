"""The marks of a bus on Kafka name the newest claims, and every claim that a batch may still have."""

from bus.kafka.mark import CLAIMS_KEPT, UNDECIDED_CLAIMS_MAX, Mark
from isrflow.kafka.seqs import seq_of


def claimed(mark: Mark, first: int, count: int) -> Mark:
    for offset in range(first, first + count):
        mark = mark.with_claim(mark.controller_epoch + 1, offset, offset)
    return mark


def test_claims_that_nobody_has_decided_stay_however_many_there_are() -> None:
    mark = claimed(Mark(), 0, CLAIMS_KEPT + 50)
    assert [offset for _, offset in mark.claims] == [offset for _, offset, _ in mark.found] == list(range(150))


def test_claims_of_a_batch_that_may_be_repeated_stay() -> None:
    mark = claimed(Mark(before=seq_of(9), through=seq_of(900)), 0, CLAIMS_KEPT + 50)
    assert [offset for _, offset in mark.claims] == list(range(10, 150))


def test_of_the_others_only_the_newest_stay() -> None:
    mark = claimed(Mark(before=seq_of(900), through=seq_of(901)), 0, CLAIMS_KEPT + 50)
    assert [offset for _, offset in mark.claims] == [offset for _, offset, _ in mark.found] == list(range(50, 150))


def test_a_mark_is_bounded() -> None:
    assert len(claimed(Mark(), 0, UNDECIDED_CLAIMS_MAX + 5).claims) == UNDECIDED_CLAIMS_MAX
