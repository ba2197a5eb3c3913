"""Whatever an observed controller did, the state is what was observed last, and a replay decides the same."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controller_logic.replay import decide
from state.decisions import Rejected
from state.observed_events import BESIDE_THE_LOG, Cause
from state.policy import Policy
from tests.support.observing import Row, Shadow, broker, partition

BROKERS = (1, 2, 3, 4)
TOPICS = ("orders", "logs", "pay.ments")
PARTITIONS = 3
SHARDS = 3

Name = tuple[str, int]


class Observed:
    """The rows that were observed last."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.topics: dict[str, Row] = {}
        self.partitions: dict[Name, Row] = {}
        self.brokers: dict[int, Row] = {}

    def results(self) -> dict[str, Any]:
        """Draw the results of an operation, and remember them. They need not be possible."""
        draw, found = self.draw, dict[str, Any]()
        if draw.random() < 0.4:
            some = draw.sample(BROKERS, draw.randint(1, 2))
            states = [{"fenced": draw.random() < 0.4, "shutting_down": draw.random() < 0.2} for _ in some]
            found["brokers"] = [broker(one, **state) for one, state in zip(some, states, strict=True)]
            self.brokers |= {row["broker"]: row for row in found["brokers"]}
        if self.brokers and draw.random() < 0.1:
            gone = draw.choice(sorted(self.brokers))
            if gone not in [row["broker"] for row in found.get("brokers", ())]:
                found["unregistered_brokers"] = [gone]
                del self.brokers[gone]
        if draw.random() < 0.15 and self.topics:
            found["deleted_topics"] = [self._delete(draw.choice(sorted(self.topics)))]
        if draw.random() < 0.5:
            found |= self._create(draw.choice(TOPICS))
        if self.partitions:
            changed = [self._row(*name) for name in sorted(self.partitions) if draw.random() < 0.4]
            found["partitions"] = found.get("partitions", []) + changed
            self.partitions |= {(row["topic"], row["partition"]): row for row in changed}
        return found

    def _delete(self, topic: str) -> Row:
        self.partitions = {name: row for name, row in self.partitions.items() if name[0] != topic}
        return self.topics.pop(topic)

    def _create(self, topic: str) -> dict[str, Any]:
        if topic in self.topics:
            return {}
        row = {"topic": topic, "topic_id": f"{self.draw.randrange(10**21):021d}Q"}
        rows = [self._row(topic, number) for number in range(PARTITIONS)]
        self.topics[topic] = row
        self.partitions |= {(topic, one["partition"]): one for one in rows}
        return {"topics": [row], "partitions": rows}

    def _row(self, topic: str, number: int) -> Row:
        draw = self.draw
        replicas = tuple(draw.sample(BROKERS, draw.randint(1, 3)))
        isr = tuple(draw.sample(BROKERS, draw.randint(0, 3)))
        adding = replicas[: draw.randint(0, 1)] if len(replicas) > 1 else ()
        removing = replicas[-1:] if adding and draw.random() < 0.5 else ()
        recovery = draw.choice(("RECOVERED", "RECOVERED", "RECOVERING"))
        return partition(
            number,
            replicas,
            isr,
            draw.choice((-1, *BROKERS)),
            (draw.randint(0, 5), draw.randint(0, 9)),
            topic,
            adding_replicas=adding,
            removing_replicas=removing,
            leader_recovery_state=recovery,
        )


def observed(seed: int, operations: int) -> tuple[Shadow, Observed]:
    world, known = Shadow(), Observed(seed)
    for _ in range(operations):
        cause = known.draw.choice([one for one in Cause if one not in BESIDE_THE_LOG])
        about = {"broker": known.draw.choice(BROKERS)}
        world.now += known.draw.randint(0, 2_000)
        world.observe(cause, evidence=about if known.draw.random() < 0.7 else {}, **known.results())
        assert world.all(Rejected) == []
        if known.draw.random() < 0.3:
            value = known.draw.choice(("1", "2"))
            row = {"entity_type": "controller", "entity": "9", "key": "min.insync.replicas", "value": value}
            world.observe(known.draw.choice(BESIDE_THE_LOG), offset=world.offset, settings=[row])
            assert world.decisions == []
        if known.draw.random() < 0.2:
            world.claim()
            world.tick(known.draw.randint(0, 30_000))
    return world, known


def shown(world: Shadow) -> dict[Name, Row]:
    """Return the partitions of the state as rows."""
    found: dict[Name, Row] = {}
    for name in world.state.topics.names():
        topic = world.state.topics.get(name)
        assert topic is not None
        for one in topic.partitions:
            found[name, one.partition] = partition(
                one.partition,
                one.replicas,
                one.isr,
                one.leader,
                (one.leader_epoch, one.partition_epoch),
                name,
                adding_replicas=one.adding_replicas,
                removing_replicas=one.removing_replicas,
                leader_recovery_state=one.leader_recovery_state.name,
            )
    return found


@given(seed=st.integers(0, 2**32), operations=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_the_state_is_what_was_observed_last(seed: int, operations: int) -> None:
    world, known = observed(seed, operations)
    assert shown(world) == known.partitions
    assert sorted(world.state.cluster.brokers) == sorted(known.brokers)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_a_replay_decides_the_same_in_any_batches_and_shards(seed: int) -> None:
    world, _ = observed(seed, 10)
    entries = list(enumerate(world.log, start=1))
    whole = decide(entries, Policy())
    assert decide(entries, Policy(), batch_sizes=(1,)).decisions == whole.decisions
    assert decide(entries, Policy(), batch_sizes=(3, 1), shards=SHARDS).decisions == whole.decisions
    assert whole.states[0].cluster.shadow == world.state.cluster.shadow
