"""A no-op decision becomes a NoOpRecord."""

from brokers.gateways.kraft.log.entries import encode_entry, records_in
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.wire.metadata.record_frame import Record
from state.decisions import NoOp
from tests.brokers.gateways.kraft.decisions import EARLIER, after, broker, common, records


def test_a_no_op_decision_is_written_as_a_no_op_record() -> None:
    assert records(NoOp(**common())) == [Record("NoOpRecord", 0, {})]
    translated = translate(after(EARLIER), [NoOp(**common())])
    assert translated.image == after(EARLIER)
    assert translated.entry is not None
    data, end_offset = encode_entry(translated.entry, 7)
    assert (end_offset, [record.name for record in records_in(data)]) == (8, ["NoOpRecord"])
    assert records(NoOp(**common()), broker(1, "fenced"))[-1].name == "NoOpRecord"


def test_a_no_op_decision_starts_no_log() -> None:
    assert translate(MetadataImage(), [NoOp(**common())]) == (MetadataImage(), None)
