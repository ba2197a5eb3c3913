"""Arbitrary texts on the bus are decided or rejected, in any batches and shards, and the engine continues."""

import sys
from collections import defaultdict
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import Decided, Entry
from cli.event_lines import with_time
from controller_logic.replay import decide
from isrflow.sqlite.deferrable import row_of
from state.decisions import Answer, AnyDecision, Rejected
from state.decisions import decode as decode_decision
from state.event_text import decode
from state.events import Malformed
from state.policy import Policy
from streaming.batch_writer import feedback_events
from tests.properties.test_random_worlds import ALWAYS_ANSWERED
from tests.properties.wild_events import BROKERS, texts
from tests.support.engine import decisions_of
from tests.support.operators import OperatorCluster

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
START_MS = 1_000


def opening() -> list[dict[str, object]]:
    """Return the events of a cluster with something to break: live brokers, topics, and a leading gateway."""
    wishes = {"want_fence": False, "want_shutdown": False}
    return [
        {"kind": "controller_started", "controller_id": "c", "controller_epoch": 1},
        *({"kind": "broker_register", "broker": b, "incarnation": "i1", "log_dirs": ["d"]} for b in BROKERS),
        *({"kind": "broker_heartbeat", "broker": b, "broker_epoch": b + 1} | wishes for b in BROKERS),
        {"kind": "gateway_started", "gateway": 100, "incarnation": "i1", "voters": [100, 101]},
        {"kind": "create_topic", "topic": "orders", "assignment": {"0": [1, 2, 3], "1": [2, 3]}},
        {"kind": "create_topic", "topic": "pay.ments", "partitions": 3, "replication_factor": 2},
    ]


def log_of(wild: list[bytes]) -> list[Entry]:
    first = [msgspec.json.encode({"time_ms": START_MS + n} | e) for n, e in enumerate(opening())]
    tick = msgspec.json.encode({"kind": "tick", "time_ms": START_MS + 200})
    claims = {1}
    return [
        Entry(seq, raw, START_MS + 10 * seq, seq in claims) for seq, raw in enumerate([*first, *wild, tick], start=1)
    ]


wild_logs = st.builds(log_of, st.lists(texts, min_size=1, max_size=25))


def by_seq(decisions: list[tuple[int, int, bytes]]) -> dict[int, list[AnyDecision]]:
    found: dict[int, list[AnyDecision]] = defaultdict(list)
    for seq, _, body in decisions:
        found[seq].append(decode_decision(body))
    return found


def check_said(entry: Entry, said: list[AnyDecision]) -> None:
    """Check that nothing fails, and that each request and each unreadable text is answered or rejected."""
    event = decode(entry.raw)
    rejected = [d for d in said if isinstance(d, Rejected)]
    answers = [d for d in said if isinstance(d, Answer)]
    assert not [d for d in rejected if d.reason in ("RULES_FAILED", "INVARIANT_BROKEN")]
    assert [d.reason == "MALFORMED" for d in rejected] in ([isinstance(event, Malformed)], [])
    assert rejected or not isinstance(event, Malformed)
    if event.request_id is not None:
        assert len(answers) == 1
        assert answers[0].request_id == event.request_id
    elif not isinstance(event, Malformed) and event.__struct_config__.tag in ALWAYS_ANSWERED:
        assert answers or rejected


@settings(max_examples=300, deadline=None)
@given(wild_logs)
def test_every_text_is_decided_or_rejected(log: list[Entry]) -> None:
    decided = decide(log, POLICY)
    said = by_seq(decided.decisions)
    for entry in log:
        check_said(entry, said[entry.seq])
    msgspec.json.encode(decided.view())
    # Followers of the decisions accept all of them too.
    image = MetadataImage()
    for seq in sorted(seq for seq in said if said[seq]):
        image, _ = translate(image, said[seq])
    feedback_events([Decided(*one) for one in decided.decisions])


@settings(max_examples=60, deadline=None)
@given(wild_logs, st.lists(st.integers(1, 9), min_size=1, max_size=4), st.sampled_from((1, 3, 16)))
def test_batches_and_shards_do_not_change_the_decisions_on_any_text(
    log: list[Entry], sizes: list[int], shards: int
) -> None:
    whole = decide(log, POLICY)
    cut = decide(log, POLICY, shards=shards, batch_sizes=sizes)
    assert cut.decisions == whole.decisions
    assert msgspec.json.encode(cut.view()) == msgspec.json.encode(whole.view())


@settings(max_examples=25, deadline=None)
@given(wild_logs, st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(1, 4))
def test_the_operators_decide_the_same(log: list[Entry], sizes: list[int], pieces: int) -> None:
    with TemporaryDirectory() as directory:
        bus = EmbeddedBus(Path(directory) / "bus.db")
        cluster, first = OperatorCluster(bus), 0
        for size in cycle(sizes):
            if first >= len(log):
                break
            cluster.batch(log[first : first + size], pieces)
            first += size
        expected = decide(log, Policy())
        assert decisions_of(bus) == expected.decisions
        assert view_of_image(bus.image()) == expected.view()
        bus.close()


@settings(max_examples=300, deadline=None)
@given(texts)
def test_a_text_is_read_the_same_everywhere(raw: bytes) -> None:
    def further_down(levels: int) -> object:
        return decode(raw) if levels == 0 else further_down(levels - 1)

    assert further_down(sys.getrecursionlimit() // 2) == decode(raw)
    # Code that reads texts on their way to the bus never changes them.
    assert row_of(raw)[2] == raw
    assert decode(with_time(raw)) is not None
