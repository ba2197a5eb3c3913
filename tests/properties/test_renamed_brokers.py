"""Rules look at the places of an assignment, and never at which brokers have them: renamed ids rename decisions alone.

Automatic placement is the one rule that looks at ids: it goes round the brokers in order of id. So here each topic is
created again with the assignment that it got. Ids also give an order to what is listed: to the decisions on one event,
to the brokers that a message names, and to keys (``directories``, ``counts``). These may come in any order here.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_logic.replay import decide
from state.cluster import Outcome
from state.decisions import Answer
from state.policy import Policy
from tests.support import random_events
from tests.support.lying_clocks import entries
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw
from tests.support.world import World

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
# Numbers that mean nothing else in an event or a decision, so that they can be found in any text.
BROKERS = tuple(range(1_990_000_001, 1_990_000_005))
_ID = re.compile(rb"\b(%b)\b" % b"|".join(str(broker).encode() for broker in BROKERS))
_LIST = re.compile(r"\[[\d, ]+\]")


@pytest.fixture(autouse=True, scope="module")
def _telling_ids() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_events, "BROKERS", BROKERS)
        yield


def placed(raw: bytes, outcome: Outcome) -> bytes:
    """Return a creation with the assignment that it led to, and any other event as it is."""
    assigned = [one.assignment for one in outcome.decisions if isinstance(one, Answer) and one.assignment]
    if not assigned or b'"assignment"' in raw:
        return raw
    event = json.loads(raw)
    lists = list(assigned[0].values())
    is_new = event["kind"] == "create_topic"
    event["assignment"] = {str(number): ids for number, ids in enumerate(lists)} if is_new else lists
    return msgspec.json.encode({key: value for key, value in event.items() if key not in _SIZES})


_SIZES = ("partitions", "replication_factor")


def renaming(new: Iterable[int]) -> Callable[[bytes], bytes]:
    """Return what replaces each broker's id in a text by the one at its place in ``new``."""
    names = {str(old).encode(): str(one).encode() for old, one in zip(BROKERS, new, strict=True)}
    return lambda text: _ID.sub(lambda found: names[found[0]], text)


def said(log: list[bytes]) -> list[tuple[int, bytes]]:
    return [(seq, body) for seq, _, body in decide(entries(log), POLICY, batch_sizes=(7,)).decisions]


def without_orders_of_ids(seq: int, body: bytes) -> tuple[int, str]:
    """Return a decision without its index, with the brokers that a message lists in order, and with keys in order."""
    decision: dict[str, Any] = msgspec.json.decode(body)
    del decision["index"]
    if "message" in decision:
        decision["message"] = _LIST.sub(_sorted, decision["message"])
    for result in decision.get("results", ()):
        result["message"] = _LIST.sub(_sorted, result["message"])
    return seq, json.dumps(decision, sort_keys=True)


def _sorted(found: re.Match[str]) -> str:
    return str(sorted(json.loads(found[0])))


@settings(max_examples=200, deadline=None)
@given(draws(max_size=80), st.permutations(BROKERS))
def test_renamed_brokers_get_the_same_decisions(drawn: list[Draw], new: list[int]) -> None:
    check([placed(raw, outcome) for _, raw, outcome in walk(drawn, POLICY)], new)


def test_every_order_of_four_replicas_is_decided_alike() -> None:
    log = eventful_log()
    for new in islice(permutations(BROKERS), 1, None):
        check(log, new)


def check(log: list[bytes], new: Sequence[int]) -> None:
    there = renaming(new)
    back = renaming(BROKERS[new.index(broker)] for broker in BROKERS)
    expected = Counter(without_orders_of_ids(*one) for one in said(log))
    found = Counter(without_orders_of_ids(seq, back(body)) for seq, body in said([there(raw) for raw in log]))
    assert found == expected


def eventful_log() -> list[bytes]:
    """Write a log about partitions on all lists of four brokers, which leave and come back, one by one and at once."""
    world = World(*BROKERS)
    world.is_checked = False
    world.claim()
    lists = [*permutations(BROKERS)]
    world.create("clean", *lists)
    world.create("unclean", *lists, unclean_leader_election_enable="true")
    first, second, *others = BROKERS
    held = [("clean", n, world.partition("clean", n)) for n in range(len(lists))]
    for leader in BROKERS:
        led = [(topic, n, one) for topic, n, one in held if one.leader == leader]
        world.alter_isrs(leader, *((topic, n, (*one.isr[3 - n % 3 :], leader)) for topic, n, one in led))
    world.beat(second, shutdown=True)
    world.beat(second, fence=True)
    world.beat(second)
    world.fence(first)
    world.fence(*others)
    world.beat(first)
    for broker in (*others, second):
        world.beat(broker, shutdown=broker == second)
    return world.log
