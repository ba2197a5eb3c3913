"""The metadata log matches the state, whatever the rules decide; a log without the last decision does not."""

from hypothesis import given, settings

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.gateways.kraft.rebuilding.state_comparison import differences
from brokers.wire.metadata.record_frame import decode_record
from bus.interface import Image, Page
from state.canonical import number
from state.cluster import State
from state.decisions import decode
from state.part import part_of
from state.policy import Policy
from state.stored.codec import encode_cluster, encode_topics
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
LEADER: Draw = ("gateway", 0, 0, 0)
# Records about brokers that the log has, and that the state lacks or drops earlier.
_UNTOLD = ("RegisterBrokerRecord", "BrokerRegistrationChangeRecord")


def stored(state: State) -> Image:
    topics = [topic for name in state.topics.names() if (topic := state.topics.get(name)) is not None]
    return Image(1, [Page(0, -1, encode_cluster(state.cluster)), Page(0, 0, encode_topics(topics))])


@settings(max_examples=40, deadline=None)
@given(draws(max_size=60))
def test_a_complete_log_matches_the_state_and_an_incomplete_one_does_not(drawn: list[Draw]) -> None:
    image = MetadataImage()
    for _, _, outcome in walk([LEADER, *drawn], POLICY):
        decisions = [decode(body) for _, _, body in number([part_of(decision) for decision in outcome.decisions])]
        if not decisions:
            continue
        before = image
        image, entry = translate(before, decisions)
        state = stored(outcome.state)
        assert differences(image, state) == ""
        if entry is not None and any(decode_record(record).name not in _UNTOLD for record in entry.records):
            assert differences(before, state) != ""
