"""The laws hold for every random log, and batches and shards do not change the decisions."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_logic.replay import decide
from state.cluster import Outcome, State
from state.decisions import Answer, AnyDecision, HighWatermark, LeaderAndIsr, Rejected, StopReplica
from state.event_text import decode
from state.events import BrokerRegister, Malformed, OfReplica
from state.ids import NO_TIME
from state.policy import Policy
from state.reason import Reason
from tests.properties.laws import check_laws
from tests.support.lying_clocks import entries
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
ALWAYS_ANSWERED = {
    "broker_register",
    "controlled_shutdown",
    "alter_isr",
    "alter_isrs",
    "create_topic",
    "delete_topic",
    "create_partitions",
    "alter_reassignment",
    "elect_leaders",
    "alter_config",
}


@settings(max_examples=600, deadline=None)
@given(draws(max_size=80), st.booleans())
def test_the_laws_hold_after_every_event(drawn: list[Draw], has_eligible: bool) -> None:
    policy = replace(POLICY, eligible_leader_replicas_version=int(has_eligible))
    for before, raw, outcome in walk(drawn, policy):
        check_laws(before, outcome, policy)
        check_said(raw, outcome.decisions)
        check_namesake(before, raw, outcome)
        check_registration(before, raw, outcome)


def check_namesake(before: State, raw: bytes, outcome: Outcome) -> None:
    """Events about a deleted topic change nothing of its successor."""
    event = decode(raw)
    topic = before.topics.get(event.topic) if isinstance(event, OfReplica) else None
    if isinstance(event, OfReplica) and topic is not None and event.topic_id not in (None, topic.topic_id):
        assert not outcome.changes
        assert outcome.state.cluster.watermarks_due == before.cluster.watermarks_due
        assert all(isinstance(d, Answer | Rejected) for d in outcome.decisions)
        assert all(d.error != "NONE" for d in outcome.decisions if isinstance(d, Answer))


def check_registration(before: State, raw: bytes, outcome: Outcome) -> None:
    """Check that a refused registration changes nothing, and that a live broker behind a gateway keeps its id."""
    event = decode(raw)
    if not isinstance(event, BrokerRegister):
        return
    answers = [d for d in outcome.decisions if isinstance(d, Answer)]
    if not answers:
        # The event's time_ms is too far ahead of its entry to the bus, and it has no request_id.
        assert [d.reason for d in outcome.decisions] == [Reason.TIME_AHEAD]
        assert (outcome.state.cluster.brokers, outcome.changes) == (before.cluster.brokers, {})
        return
    [answer] = answers
    if answer.error != "NONE":
        assert len(outcome.decisions) == 1
        assert (outcome.state.cluster.brokers, outcome.changes) == (before.cluster.brokers, {})
    former = before.cluster.brokers.get(event.broker)
    if former is None or former.incarnation == event.incarnation or not (former.is_kraft and former.is_live):
        return
    silent_ms = outcome.state.cluster.clock_ms - former.last_contact_ms
    if former.connection_lost_ms == NO_TIME and silent_ms < POLICY.broker_session_timeout_ms:
        assert answer.error == "DUPLICATE_BROKER_REGISTRATION"


def check_said(raw: bytes, decisions: list[AnyDecision]) -> None:
    event = decode(raw)
    answers = [d for d in decisions if isinstance(d, Answer)]
    rejected = [d for d in decisions if isinstance(d, Rejected)]
    request_id = getattr(event, "request_id", None)
    assert len(answers) <= 1
    assert not any(d.reason == "INVARIANT_BROKEN" for d in rejected)
    assert not answers or answers[0].request_id == request_id
    if request_id is not None or (not isinstance(event, Malformed) and event.__struct_config__.tag in ALWAYS_ANSWERED):
        assert answers or rejected
    if request_id is not None:
        assert answers
    for kind in (LeaderAndIsr, StopReplica, HighWatermark):
        said = Counter((d.topic, d.partition) for d in decisions if isinstance(d, kind))
        assert all(count == 1 for count in said.values()), f"two {kind.__name__} of one partition in one event"


@settings(max_examples=60, deadline=None)
@given(draws(max_size=80), st.lists(st.integers(1, 30), min_size=1, max_size=6), st.booleans())
def test_batches_and_shards_do_not_change_the_decisions(
    drawn: list[Draw], batch_sizes: list[int], has_eligible: bool
) -> None:
    policy = replace(POLICY, eligible_leader_replicas_version=int(has_eligible))
    log = entries(raw for _, raw, _ in walk(drawn, policy))
    whole = decide(log, policy)
    for shards in (1, 3, 16):
        cut = decide(log, policy, shards=shards, batch_sizes=batch_sizes)
        assert cut.decisions == whole.decisions
        assert msgspec.json.encode(cut.view()) == msgspec.json.encode(whole.view())
    assert len({(seq, index) for seq, index, _ in whole.decisions}) == len(whole.decisions)


@settings(max_examples=30, deadline=None)
@given(draws(max_size=60), st.integers(0, 60))
def test_repeated_events_are_skipped(drawn: list[Draw], again_from: int) -> None:
    log = entries(raw for _, raw, _ in walk(drawn, POLICY))
    repeated = [*log, *log[again_from:]]
    assert decide(repeated, POLICY, batch_sizes=(7,)).decisions == decide(log, POLICY).decisions
