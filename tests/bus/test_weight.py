"""An event about many partitions weighs what it may change."""

from bus.weight import PARTITION_BYTES, REPORT_BYTES, partitions_named, weight_of


def test_the_rows_of_a_request_for_isrs_are_counted_from_its_text() -> None:
    topics = b'"topics":[{"topic":"t","partitions":[[0,0,0,[1]],[1,0,0,[1],[7]]]}]'
    assert partitions_named(b"{%b}" % topics) == 2
    assert partitions_named(b'{"topics":[{"topic":"t","partitions":7}]}') == 0, "it is malformed"
    raw = b'{"kind":"alter_isrs","time_ms":1,%b}' % topics
    assert weight_of(raw) == len(raw) + 2 * PARTITION_BYTES


def test_the_rows_of_a_report_weigh_as_much_as_single_ones() -> None:
    raw = b'{"kind":"log_end_offsets","time_ms":1,"topics":[{"topic":"t","partitions":[[0,0,5],[1,0,5],[2,0,5]]}]}'
    assert weight_of(raw) == len(raw) + 3 * REPORT_BYTES
    reports = b'{"kind":"replica_reports","time_ms":1,"topics":[{"topic":"t","partitions":[[0,0,"leader"]]}]}'
    assert weight_of(reports) == len(reports) + REPORT_BYTES
    assert weight_of(raw + b"{{{{{{") > weight_of(raw) - 3 * REPORT_BYTES
