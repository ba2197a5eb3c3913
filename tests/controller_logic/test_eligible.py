"""Eligible replicas, against a model of logs in which a leader commits records one by one."""

import random
from itertools import chain, combinations

import pytest

from controller_logic.eligible import eligible_after, former_members_after, last_known_after

Ids = tuple[int, ...]


class World:
    """A partition whose replicas have logs.

    A log is the set of the records in it. The model knows nothing of eligible replicas: it writes a record to every
    member of the ISR, and the record is committed if the ISR has min.insync.replicas members, or all replicas.
    """

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.replicas: Ids = tuple(draw.sample(range(1, 6), draw.randint(1, 4)))
        self.min_isr = draw.randint(1, 3)
        self.isr: Ids = self.replicas
        self.elr: Ids = ()
        self.former: Ids = ()
        self.logs: dict[int, set[int]] = {replica: set() for replica in self.replicas}
        self.committed: set[int] = set()
        self.records = 0

    def write(self) -> None:
        """Let the leader, if there is one, append a record that its ISR replicates."""
        self.records += 1
        for member in self.isr:
            self.logs[member].add(self.records)
        if self.isr and len(self.isr) >= min(self.min_isr, len(self.replicas)):
            self.committed.add(self.records)

    def change(self) -> None:
        """Change the ISR or the replicas as the rules may, or the setting, and take the eligible replicas from it."""
        isr, replicas, unproven = self.isr, self.replicas, set[int]()
        kind = self.draw.choice(("leave", "leave", "crash", "join", "lead", "move", "setting", "write"))
        if kind == "leave":
            isr = tuple(member for member in isr if self.draw.random() < 0.5)
        elif kind == "crash":
            unproven = {self.draw.choice(replicas)}
            isr = tuple(member for member in isr if member not in unproven)
            for replica in unproven:
                kept = sorted(self.logs[replica])
                self.logs[replica] = set(kept[: self.draw.randint(0, len(kept))])
        elif kind == "join" and isr:
            joiner = self.draw.choice(replicas)
            self.logs[joiner] = set(self.logs[isr[0]])
            isr = (*[member for member in isr if member != joiner], joiner)
        elif kind == "lead" and not isr and self.elr:
            isr = (self.draw.choice(self.elr),)
        elif kind == "move":
            replicas = tuple(self.draw.sample(range(1, 6), self.draw.randint(1, 4)))
            isr = tuple(member for member in isr if member in replicas)
            self.logs = {replica: self.logs.get(replica, set()) for replica in replicas}
        elif kind == "setting":
            self.min_isr = self.draw.randint(1, 3)
        former = self.isr, self.elr
        given = {"replicas": replicas, "min_isr": self.min_isr, "unproven": unproven}
        self.elr = eligible_after(*former, isr, **given)
        # A replica that is moved away and back has another log, and so has no crash behind it.
        crashed = unproven if kind == "crash" else set()
        self.former = former_members_after(self.former, *former, isr, self.elr, crashed=crashed, **given)
        # To apply it to the loss alone, and then to the election, gives the same.
        lost = tuple(member for member in isr if member in self.isr)
        between = eligible_after(*former, lost, **given)
        assert kind == "join" or eligible_after(lost, between, isr, **given) == self.elr
        self.isr, self.replicas = isr, replicas


@pytest.mark.parametrize("seed", range(12))
def test_every_eligible_replica_has_every_committed_record(seed: int) -> None:
    world = World(random.Random(seed))
    for _ in range(400):
        world.change()
        if world.draw.random() < 0.7:
            world.write()
        for replica in world.elr:
            assert world.logs[replica] >= world.committed
        if not (world.isr or world.elr):
            world = World(world.draw)


@pytest.mark.parametrize("seed", range(12))
def test_a_former_member_whose_log_reaches_the_high_watermark_has_every_committed_record(seed: int) -> None:
    world, proven, short = World(random.Random(seed)), 0, 0
    for _ in range(2_000):
        world.change()
        if world.draw.random() < 0.7:
            world.write()
        complete = next((world.logs[replica] for replica in (*world.isr, *world.elr)), set())
        end = max(world.committed, default=0)
        high_watermark = len([record for record in complete if record <= end])
        for replica in world.former if world.isr or world.elr else ():
            if len(world.logs[replica]) >= high_watermark:
                assert world.logs[replica] >= world.committed
                proven += 1
            else:
                short += 1
        if not (world.isr or world.elr):
            world = World(world.draw)
    assert proven > 20 < short


def subsets(ids: Ids) -> list[Ids]:
    return list(chain.from_iterable(combinations(ids, size) for size in range(len(ids) + 1)))


def test_none_is_left_out_without_a_reason() -> None:
    """Every former member that stays assigned, has its log and is not in the ISR is eligible, or the ISR commits."""
    count = 0
    for former, isr, unproven in ((a, b, c) for a in subsets((1, 2, 3)) for b in subsets(a) for c in subsets(a)):
        for min_isr in (1, 2, 3, 4):
            found = eligible_after(former, (4,), isr, replicas=(4, 3, 2, 1), min_isr=min_isr, unproven=unproven)
            commits = len(isr) >= min_isr
            expected = {*former, 4} - {*isr} - {*unproven}
            assert set(found) == (set() if commits else expected)
            assert list(found) == sorted(found, reverse=True)
            count += 1
    assert count == 500


@pytest.mark.parametrize(
    ("former", "after", "expected"),
    [
        # The leader goes.
        (((), 1, (1, 2), ()), (-1, (), (1, 2)), (1,)),
        # There was no leader, and the last member of the ISR goes.
        (((), -1, (2,), ()), (-1, (), (1, 2)), (2,)),
        # The last member waits.
        (((), -1, (2,), ()), (-1, (2,), (1, 2)), ()),
        # The one that was remembered stays.
        (((1,), -1, (2,), ()), (-1, (), (1, 2)), (1,)),
        (((1,), -1, (), (2,)), (-1, (), (1, 2)), (1,)),
        (((1,), -1, (), (1, 2)), (2, (2,), (1, 2)), ()),
        # It is not assigned any more.
        (((1,), -1, (), (1, 2)), (-1, (), (2, 3)), (2,)),
        (((1,), -1, (), ()), (-1, (), (2, 3)), ()),
        # There was no leader yet.
        (((), -1, (), ()), (-1, (), (2, 3)), ()),
    ],
)
def test_the_last_leader_is_remembered_until_there_is_one(
    former: tuple[Ids, int, Ids, Ids], after: tuple[int, Ids, Ids], expected: Ids
) -> None:
    leader, isr, replicas = after
    assert last_known_after(*former, leader=leader, isr=isr, replicas=replicas) == expected
