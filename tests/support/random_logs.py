"""Random logs, from one generator for all tests: a draw is a kind and three small numbers, read against the state.

Tests that search let Hypothesis draw (``draws``). Tests that need one log of some length use a seed (``seeded``).
"""

import random
from collections.abc import Iterator
from itertools import islice

import msgspec
from hypothesis import strategies as st

from controller_logic.replay import first_states, logged
from controller_logic.step import step
from state.cluster import Outcome, State
from state.policy import Policy
from tests.support.lying_clocks import Clocks, RightClocks, entries
from tests.support.random_events import MAKERS
from tests.support.scenes import Draw, events_of


def draws(*, max_size: int) -> st.SearchStrategy[list[Draw]]:
    number = st.integers(0, 11)
    draw = st.tuples(st.sampled_from(WEIGHTED), number, number, number)
    # Half of the logs must be long, because Hypothesis alone would make most of them some five draws long.
    return st.lists(draw, min_size=max_size // 2, max_size=max_size) | st.lists(draw, max_size=max_size)


def walk(drawn: list[Draw], policy: Policy) -> Iterator[tuple[State, bytes, Outcome]]:
    """Publish an event for each draw, under clocks that lie; yield the state before it, its text, and the outcome."""
    # Some logs begin without a claim.
    opening = _OPENING if len(drawn) % 4 == 1 else [_CLAIM, *_OPENING]
    return _walk([*opening, *drawn], policy, Clocks())


def seeded_draws(seed: int, count: int, without: tuple[str, ...] = ()) -> list[Draw]:
    """Make ``count`` draws from a seed, of all kinds but those in ``without``."""
    rng = random.Random(seed)
    kinds = [kind for kind in WEIGHTED if kind not in without]
    return [(rng.choice(kinds), rng.randrange(12), rng.randrange(12), rng.randrange(12)) for _ in range(count)]


def seeded(seed: int, count: int) -> list[tuple[int, bytes]]:
    """Return a log of ``count`` events, (seq, raw) from seq 1, under one controller and with right clocks."""
    steps = _walk([_CLAIM, *_OPENING, *seeded_draws(seed, count, without=_UNSEEDED)], Policy(), RightClocks())
    return list(enumerate((raw for _, raw, _ in islice(steps, count)), start=1))


def _walk(drawn: list[Draw], policy: Policy, clocks: Clocks) -> Iterator[tuple[State, bytes, Outcome]]:
    state = first_states(1)[0]
    now = 10_000_000
    of_replicas: list[bytes] = []
    for seq, draw in enumerate((event for one in drawn for event in events_of(one)), start=1):
        is_late = draw[0] == "late" and bool(of_replicas)
        now += 0 if is_late else _PAUSES_MS[draw[3]]
        if draw[0] == "set_clock":
            clocks.set_bus(draw[1])
        kind, fields = MAKERS[draw[0]](state, *draw[1:])
        raw = msgspec.json.encode({"kind": kind} | clocks.fields(state.cluster, kind, draw[1:], now) | fields)
        if is_late:
            # An earlier report arrives late or a second time, perhaps after its topic was created again.
            raw = of_replicas[-1 - (12 * draw[1] + draw[2]) % len(of_replicas)]
        elif kind in _OF_REPLICAS:
            of_replicas.append(raw)
        if draw[0] == "junk":
            raw = _JUNK[draw[1] % len(_JUNK)]
        outcome = step(state, list(logged(entries([raw], seq))), policy)
        yield state, raw, outcome
        state = outcome.state


# The claim of the first epoch.
_CLAIM: Draw = ("started", 4, 1, 1)
_OPENING: list[Draw] = [("register", broker, 0, 0) for broker in range(4)] + [
    ("beat", broker, 0, 0) for broker in range(4)
]
# Tests with a seed leave these out, because their expectations come from logs without them.
_UNSEEDED = ("started", "set_clock", "alter_isrs", "offsets", "reports", "log", "strategy", "raise", "crashes")
_PAUSES_MS = (0, 0, 0, 0, 1, 1, 10, 10, 100, 100, 500, 3_000, 8_900)
_JUNK = (b"not json", b"{}", b'{"kind":"tick","time_ms":-4}', b'{"kind":"nonsense","time_ms":1}', b'"\xff\xfe"')
_OF_REPLICAS = ("alter_isr", "log_end_offset", "log_end_offsets", "replica_report", "replica_reports", "replica_log")
WEIGHTED = [
    *MAKERS,
    "blackout",
    *["second_move"] * 2,
    *["namesake"] * 2,
    *["beat"] * 6,
    *["tick"] * 4,
    *["alter_isr"] * 5,
    *["alter_isrs"] * 3,
    *["offset"] * 5,
    *["offsets"] * 3,
    *["create"] * 2,
    *["reassign"] * 3,
    *["report"] * 3,
    *["reports"] * 3,
    *["log"] * 4,
    *["raise"] * 2,
    *["crashes"] * 3,
]
