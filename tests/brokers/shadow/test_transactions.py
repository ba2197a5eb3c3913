"""The records of a transaction count at its end, and those of an aborted one never."""

from brokers.shadow.source import Batch
from brokers.shadow.transactions import Transactions
from tests.brokers.shadow.worlds import batch, rec

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
