"""The records of a transaction count at its end, and those of an aborted one never."""

import pytest

from brokers.shadow.source import Batch, Gap
from brokers.shadow.transactions import Transactions
from tests.brokers.shadow.worlds import batch, operations, rec, short

BEGIN, END, ABORT, NO_OP = rec("BeginTransaction"), rec("EndTransaction"), rec("AbortTransaction"), rec("NoOp")
WORDS = {BEGIN.name: "begin", END.name: "end", ABORT.name: "abort", NO_OP.name: "-"}


def told(*batches: Batch) -> list[str]:
    transactions = Transactions()
    return [
        f"{one.base_offset}: {' '.join(WORDS[record.name] for record in one.records)}"
        for given in batches
        for one in transactions.settled(given)
    ]


def test_records_outside_of_transactions_come_at_once() -> None:
    assert told(batch(3, NO_OP, NO_OP), batch(5, NO_OP)) == ["3: - -", "5: -"]


def test_a_transaction_comes_at_its_end_and_in_its_order() -> None:
    first = batch(0, NO_OP, BEGIN, NO_OP)
    assert told(first) == ["0: -"]
    assert told(first, batch(3, NO_OP), batch(4, NO_OP, END, NO_OP)) == [
        "0: -",
        "1: begin -",
        "3: -",
        "4: - end",
        "6: -",
    ]


def test_an_aborted_transaction_never_comes() -> None:
    assert told(batch(0, BEGIN, NO_OP), batch(2, NO_OP, ABORT, NO_OP)) == ["4: -"]
    assert told(batch(0, BEGIN, NO_OP, ABORT, BEGIN, NO_OP, END)) == ["3: begin - end"]


def test_a_new_leader_keeps_its_place_within_a_transaction() -> None:
    control = batch(2, NO_OP)._replace(is_control=True)
    assert told(batch(0, BEGIN, NO_OP), control, batch(3, END)) == ["0: begin -", "2: -", "3: end"]
    assert told(batch(0, BEGIN, NO_OP), control, batch(3, ABORT)) == ["2: -"]
    open_at_the_end = Transactions()
    assert [*open_at_the_end.settled(batch(0, BEGIN, NO_OP)), *open_at_the_end.settled(control)] == []
    assert open_at_the_end.dropped() == [control]


def test_an_open_transaction_is_known() -> None:
    transactions = Transactions()
    assert transactions.begins_at is None
    assert list(transactions.settled(batch(7, NO_OP, BEGIN))) == [batch(7, NO_OP)]
    assert transactions.begins_at == 8


@pytest.mark.parametrize("limits", [(3, 1 << 20), (1 << 20, 300)])
def test_a_transaction_that_is_too_large_is_a_gap_if_it_ends(limits: tuple[int, int]) -> None:
    control = batch(5, NO_OP)._replace(is_control=True)
    begins = batch(0, NO_OP, BEGIN, NO_OP)._replace(size=150)
    given = [begins, *(batch(at, NO_OP)._replace(size=120) for at in (3, 4)), control, batch(6, NO_OP)]
    for last, expected in (
        (
            END,
            [
                Gap(
                    1,
                    8,
                    f"they are a transaction of more than {limits[0]} records or {limits[1]} bytes, which is not read",
                )
            ],
        ),
        (ABORT, []),
    ):
        transactions = Transactions(*limits)
        found = [one for each in [*given, batch(7, last, NO_OP)] for one in transactions.settled(each)]
        assert found == [batch(0, NO_OP)._replace(size=50), control, *expected, batch(8, NO_OP)]
        assert transactions.begins_at is None
        fits = batch(9, BEGIN, NO_OP, END)
        assert list(transactions.settled(fits)) == [fits], "the next one is counted from its own beginning"


def test_what_follows_the_gap_of_a_transaction_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transactions.__init__, "__defaults__", (2, 1 << 20))
    topic = rec("Topic", Name="t", TopicId="TTTTTTTTTTTTTTTTTTTTTQ")
    found = operations(batch(0, BEGIN, NO_OP, NO_OP), batch(3, END, topic))
    assert [short(one) for one in found] == ["0-3 gap certain", "4-4 topic_created certain"]
