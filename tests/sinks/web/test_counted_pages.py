"""Pages that change one after another come to the same counts as their newest versions counted at once."""

import random

import msgspec
import pytest
from msgspec.structs import replace

from sinks.web.counted_pages import CountedPages, shape
from sinks.web.partitions import TopicFacts, facts_of, summarise
from state.ids import NO_LEADER
from state.partition import LeaderRecoveryState, Partition, ReplicaState, Topic, TopicState
from state.policy import Policy
from state.stored.codec import encode_slices
from state.stored.slices import SLICE_PARTITIONS, slices_of
from tests.sinks.web.test_partitions import ONLINE, partition, summary_of, topic

POLICY = Policy(min_insync_replicas=2)
RACKS = {1: "x", 2: "x", 3: "y", 4: "y"}
PAGES = 3


def pages_of(topics: list[Topic]) -> list[tuple[tuple[int, int], bytes]]:
    """Lay topics out on pages, each slice by its topic's name and its place."""
    slices = [one for each in topics for one in slices_of(each)]
    on_pages = [[one for one in slices if (len(one.topic) + one.nth) % PAGES == page] for page in range(PAGES)]
    return [((0, page), encode_slices(held)) for page, held in enumerate(on_pages)]


def counted(topics: list[Topic]) -> CountedPages:
    whole, pages = CountedPages(POLICY, RACKS), pages_of(topics)
    whole.learn(body for _, body in pages)
    whole.put(pages)
    return whole


def any_partition(drawn: random.Random, number: int) -> Partition:
    replicas = tuple(drawn.sample(range(1, 5), drawn.randint(1, 3)))
    isr = replicas[: drawn.randint(1, len(replicas))]
    return replace(
        partition(number, replicas=replicas, isr=isr, leader=drawn.choice([isr[0], isr[0], NO_LEADER])),
        replica_states=(drawn.choice(list(ReplicaState)[2:4]), *ONLINE)[: len(replicas)],
        high_watermark=drawn.randint(0, 3),
        leader_epoch=drawn.randint(0, 1),
        leader_recovery_state=drawn.choice([*[LeaderRecoveryState.RECOVERED] * 5, LeaderRecoveryState.RECOVERING]),
        adding_replicas=replicas[:1] * (drawn.random() < 0.1),
        elr=replicas[len(isr) :] * (drawn.random() < 0.5),
    )


def next_of(drawn: random.Random, topics: dict[str, Topic]) -> None:
    """Make, grow, change or remove one topic."""
    name = "t" * drawn.randint(1, 6)
    held = topics.get(name) or topic(name=name)
    partitions = list(held.partitions) or [
        any_partition(drawn, number) for number in range(drawn.choice([1, 4, 1_003]))
    ]
    for _ in range(drawn.randint(0, 3)):
        place = drawn.randint(0, len(partitions))
        partitions[place : place + 1] = [any_partition(drawn, place)]
    config = drawn.choice([held.config, {}, {"min.insync.replicas": "1"}])
    state = drawn.choice([*[TopicState.created] * 4, TopicState.deleting])
    topics[name] = replace(held, partitions=tuple(partitions), config=config, state=state)
    if drawn.random() < 0.2:
        del topics[name]


@pytest.mark.parametrize("seed", range(3))
def test_changes_come_to_the_same_as_counting_all(seed: int) -> None:
    drawn, topics = random.Random(seed), dict[str, Topic]()
    followed, known, again = counted([]), pages_of([]), 0
    for _ in range(30):
        next_of(drawn, topics)
        held = list(topics.values())
        changed = [page for page in pages_of(held) if page not in known]
        known = pages_of(held)
        if not followed.put(changed):
            followed, again = counted(held), again + 1
        at_once = counted(held)
        assert followed.sum.summary(50) == at_once.sum.summary(50)
        assert (followed.facts, followed.partitions) == (at_once.facts, sum(len(one.partitions) for one in held))
    assert again < 15
    whole = at_once.sum.summary(9)
    assert whole.at_risk == summary_of(*held, policy=POLICY, racks=RACKS).at_risk
    assert all(whole.leaders.values())
    assert whole.lost
    assert whole.lost_racks


def test_a_large_topics_settings_are_those_of_its_first_slice() -> None:
    large = topic(*(partition(number, isr=(1, 2)) for number in range(SLICE_PARTITIONS + 500)), min_insync_replicas="3")
    assert facts_of(large) == facts_of(slices_of(large)[0]) == TopicFacts(3, False)
    pages = counted([large])
    assert pages.sum.summary(9).problems["under_min_isr"] == 1_500


def test_a_field_by_which_partitions_are_not_told_apart_changes_no_summary() -> None:
    one = partition(isr=(1, 2), elr=(3,))
    others = {int: 7, tuple: (5,)}
    told_apart = set()
    for field in msgspec.structs.fields(Partition):
        value = getattr(one, field.name)
        other = replace(one, **{field.name: others[tuple if isinstance(value, tuple) else int]})
        if shape(other) != shape(one):
            told_apart.add(field.name)
            continue
        summaries = [summarise({("t", TopicFacts(2, False), 0): [each]}, POLICY, RACKS) for each in (one, other)]
        assert summaries[0] == summaries[1], field.name
    assert {"partition", "isr", "leader", "elr", "replica_states"} < told_apart
